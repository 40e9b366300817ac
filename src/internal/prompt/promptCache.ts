/**
 * Forecasts what a vendor reads of a prompt from its cache. Pure.
 *
 * A vendor keeps the beginnings of prompts for some minutes, up to the places that are marked: the system text, and the
 * last message. A prompt reads the longest kept beginning that is its own. Tools come before the system text, the system
 * text before the messages, so a change in front loses all that follows.
 */

import type { Message } from "../../Message.ts"
import type { ToolDefinition } from "../../Provider.ts"
import type { Growing } from "../base/lists.ts"
import { estimate, estimateSystem, ofTools } from "./tokenEstimate.ts"

/** The parts of a request by which a cache goes. */
export interface Prompt {
  readonly model: string
  readonly tools: ReadonlyArray<ToolDefinition>
  readonly system: string | null
  readonly messages: Growing<Message>
}

/** A beginning that is kept: the tools, the system text and so many messages of a prompt. */
interface Entry extends Prompt {
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

/** Forecasts a prompt that is sent at `now`, and returns what is kept after it. */
export const send = (cache: PromptCache, prompt: Prompt, now: number): Forecast & { readonly cache: PromptCache } => {
  const fits = live(fitting(cache, prompt), now)
  return { ...forecast(cache, prompt, fits), cache: keptAfter(cache, prompt, now, fits) }
}

const live = (entries: PromptCache, now: number): PromptCache => entries.filter(({ usedAt }) => now - usedAt <= keptFor)

const forecast = (cache: PromptCache, prompt: Prompt, fits: PromptCache): Forecast => {
  const last = cache.at(-1)
  if (last === undefined) return { tokens: 0, possible: 0, lost: undefined }
  const tokens = longest(fits)
  const possible = Math.max(tokens, last.tokens)
  if (tokens === possible) return { tokens, possible, lost: undefined }
  return { tokens, possible, lost: changeOf(last, prompt) ?? "expired" }
}

const keptAfter = (cache: PromptCache, prompt: Prompt, now: number, fits: PromptCache): PromptCache => {
  const { length } = prompt.messages
  const kept = live(cache, now)
  const line = lineAfter(kept, fits[0])
  const lengths = prompt.system !== null && length > 0 ? [0, length] : [length]
  const added = lengths.flatMap((length) => beginning(prompt, length, fits, line, now))
  const isAdded = (entry: Entry) => fits.includes(entry) && added.some(({ length }) => length === entry.length)
  // A beginning that is read is kept for longer, and with it those that it begins with.
  const others = kept
    .filter((entry) => !isAdded(entry))
    .map((entry) => (fits.includes(entry) ? { ...entry, usedAt: now } : entry))
  return [...others, ...added].slice(-most)
}

/** The beginning of a prompt with so many messages, if it is long enough to be kept. */
const beginning = (
  prompt: Prompt,
  length: number,
  fits: PromptCache,
  line: number,
  now: number
): ReadonlyArray<Entry> => {
  const known = fits.find((entry) => entry.length <= length) ?? {
    length: 0,
    tokens: ofTools(prompt.tools) + estimateSystem(prompt.system)
  }
  let { tokens } = known
  for (let index = known.length; index < length; index++) {
    const message = prompt.messages.at(index)
    if (message !== undefined) tokens += estimate(message)
  }
  return tokens < shortest ? [] : [{ ...prompt, length, tokens, usedAt: now, line }]
}

/** The entries that a prompt begins with, the longest first. */
const fitting = (cache: PromptCache, prompt: Prompt): PromptCache => {
  const lines = new Set<number>()
  return cache
    .toSorted((a, b) => b.length - a.length)
    .filter((entry) => {
      if (lines.has(entry.line)) return true
      const fits = changeOf(entry, prompt) === undefined
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
const changeOf = (entry: Entry, { messages, model, system, tools }: Prompt): Change | undefined => {
  if (entry.model !== model) return "model"
  if (!isSameTools(entry.tools, tools)) return "tools"
  if (entry.system !== system) return "system"
  // A conversation that only grew begins with what it was.
  if (messages.grewFrom(entry.messages)) return undefined
  for (let index = 0; index < entry.length; index++) {
    if (!isSameText(entry.messages.at(index), messages.at(index))) return "messages"
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

/** A summary is made anew for each prompt. */
const isSameText = (a: Message | undefined, b: Message | undefined): boolean =>
  a === b ||
  (a !== undefined && a.role === b?.role && a.content.every(({ type }) => type === "text") && textOf(a) === textOf(b))

const textOf = ({ content }: Message): string =>
  content.map((part) => (part.type === "text" ? part.text : "\0")).join("\0")
