/**
 * Forecasts what a vendor reads of a prompt from its cache. Pure.
 *
 * A vendor keeps the beginnings of prompts for some minutes, up to the places that are marked: the system text, and the
 * last message. A prompt reads the longest kept beginning that is its own. Tools come before the system text, the system
 * text before the messages, so a change in front loses all that follows.
 */

import type { Message } from "../../Message.ts"
import type { Request, ToolDefinition } from "../../Provider.ts"
import { estimate, ofTools } from "./tokenEstimate.ts"

/** A beginning that is kept: so many messages of a prompt, the system message among them. */
interface Entry {
  readonly model: string
  readonly tools: ReadonlyArray<ToolDefinition>
  readonly messages: ReadonlyArray<Message>
  readonly length: number
  readonly tokens: number
  readonly usedAt: number
  /** Entries of one line begin with the shorter ones of it, so that one comparison is enough for all. */
  readonly line: number
}

/** What is kept, the latest last. */
export type PromptCache = ReadonlyArray<Entry>

/** The part of a prompt that differs from the one before. */
export type Change = "model" | "tools" | "system" | "messages"

/** What is expected of one prompt. */
export interface Forecast {
  /** Tokens that are read from the cache, about. */
  readonly tokens: number
  /** Tokens that would have been, had nothing changed and no time passed. */
  readonly possible: number
  /** Why less is read than possible. */
  readonly lost: Change | "expired" | undefined
}

export const empty: PromptCache = []

/** How long a beginning is kept after its last use, in milliseconds. */
export const keptFor = 5 * 60_000

/** Shorter beginnings are not kept. */
export const shortest = 1024

const most = 16

/** Forecasts the next prompt, which is sent at `now`. */
export const forecast = (cache: PromptCache, request: Request, now: number): Forecast =>
  forecastFrom(cache, request, live(fitting(cache, request), now))

/** What is kept after a prompt was sent at `now`. */
export const sent = (cache: PromptCache, request: Request, now: number): PromptCache =>
  keptAfter(cache, request, now, live(fitting(cache, request), now))

/** Does both, and compares the prompt with what is kept only once. */
export const send = (cache: PromptCache, request: Request, now: number): Forecast & { readonly cache: PromptCache } => {
  const fits = live(fitting(cache, request), now)
  return { ...forecastFrom(cache, request, fits), cache: keptAfter(cache, request, now, fits) }
}

const live = (entries: PromptCache, now: number): PromptCache => entries.filter(({ usedAt }) => now - usedAt <= keptFor)

const forecastFrom = (cache: PromptCache, request: Request, fits: PromptCache): Forecast => {
  const last = cache.at(-1)
  if (last === undefined) return { tokens: 0, possible: 0, lost: undefined }
  const tokens = longest(fits)
  const possible = Math.max(tokens, last.tokens)
  if (tokens === possible) return { tokens, possible, lost: undefined }
  return { tokens, possible, lost: changeOf(last, request) ?? "expired" }
}

const keptAfter = (cache: PromptCache, request: Request, now: number, fitting: PromptCache): PromptCache => {
  const { messages } = request
  const kept = live(cache, now)
  const fits = new Set(fitting)
  const [hit] = fits
  const line = lineAfter(kept, hit)
  const lengths = messages[0]?.role === "system" && messages.length > 1 ? [1, messages.length] : [messages.length]
  const added = lengths.flatMap((length) => beginning(request, length, hit, line, now))
  const isAdded = (entry: Entry) => fits.has(entry) && added.some(({ length }) => length === entry.length)
  // A beginning that is read is kept for longer, and with it those that it begins with.
  const others = kept
    .filter((entry) => !isAdded(entry))
    .map((entry) => (fits.has(entry) ? { ...entry, usedAt: now } : entry))
  return [...others, ...added].slice(-most)
}

/** The beginning of a prompt with so many messages, if it is long enough to be kept. */
const beginning = (
  { messages, model, tools }: Request,
  length: number,
  hit: Entry | undefined,
  line: number,
  now: number
): ReadonlyArray<Entry> => {
  const known = hit !== undefined && hit.length <= length ? hit : { length: 0, tokens: ofTools(tools) }
  const added = messages.slice(known.length, length).reduce((sum, message) => sum + estimate(message), 0)
  const tokens = known.tokens + added
  return tokens < shortest ? [] : [{ model: model.id, tools, messages, length, tokens, usedAt: now, line }]
}

/** The entries that a prompt begins with, the longest first. */
const fitting = (cache: PromptCache, request: Request): PromptCache => {
  const lines = new Set<number>()
  return cache
    .toSorted((a, b) => b.length - a.length)
    .filter((entry) => {
      if (lines.has(entry.line)) return true
      const fits = changeOf(entry, request) === undefined
      if (fits) lines.add(entry.line)
      return fits
    })
}

/** The line of what goes on with a hit: its own, unless that went on already. */
const lineAfter = (cache: PromptCache, hit: Entry | undefined): number => {
  const goesOn = hit !== undefined && !cache.some(({ length, line }) => line === hit.line && length > hit.length)
  return goesOn ? hit.line : cache.reduce((most, { line }) => Math.max(most, line), 0) + 1
}

const longest = (entries: PromptCache): number => entries.reduce((most, { tokens }) => Math.max(most, tokens), 0)

/** The first part of a kept beginning that a prompt has otherwise. Undefined if the prompt begins with it. */
const changeOf = (entry: Entry, { messages, model, tools }: Request): Change | undefined => {
  if (entry.model !== model.id) return "model"
  if (!isSameTools(entry.tools, tools)) return "tools"
  for (let index = 0; index < entry.length; index++) {
    const before = entry.messages[index]
    if (before !== messages[index] && !isSameText(before, messages[index])) {
      return before?.role === "system" ? "system" : "messages"
    }
  }
  return undefined
}

const isSameTools = (a: ReadonlyArray<ToolDefinition>, b: ReadonlyArray<ToolDefinition>): boolean =>
  a === b ||
  (a.length === b.length &&
    a.every((tool, index) => {
      const other = b[index]
      return (
        tool === other ||
        (tool.name === other?.name &&
          tool.description === other.description &&
          (tool.inputSchema === other.inputSchema ||
            JSON.stringify(tool.inputSchema) === JSON.stringify(other.inputSchema)))
      )
    }))

/** The system message, and a summary, are made anew for each prompt. */
const isSameText = (a: Message | undefined, b: Message | undefined): boolean =>
  a !== undefined && a.role === b?.role && a.content.every(({ type }) => type === "text") && textOf(a) === textOf(b)

const textOf = ({ content }: Message): string =>
  content.map((part) => (part.type === "text" ? part.text : "\0")).join("\0")
