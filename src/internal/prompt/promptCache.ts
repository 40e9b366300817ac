/**
 * Forecasts how much of a prompt a vendor reads from its cache. Pure.
 *
 * A vendor caches prefixes of prompts for some minutes, up to the marked places: the system text and the last message.
 * A prompt reads its longest cached prefix. Tools precede the system text, and the system text precedes the messages,
 * so a change invalidates everything after it.
 */

import type { Message } from "../../Message.ts"
import type { ToolDefinition } from "../../Provider.ts"
import type { Growing } from "../../kit/lists.ts"
import { estimate, estimateOnce, estimateSystem, ofTools } from "./tokenEstimate.ts"

/** The parts of a request that identify a cached prefix. */
export interface Prompt {
  readonly model: string
  readonly tools: ReadonlyArray<ToolDefinition>
  readonly system: string | null
  readonly messages: Growing<Message>
}

/** A cached prefix: the tools, the system text and the first `length` messages of a prompt. */
interface Entry extends Prompt {
  readonly length: number
  readonly tokens: number
  readonly usedAt: number
  /** Longer entries of a line extend its shorter ones, so one comparison is enough for all. */
  readonly line: number
}

/** The cached prefixes, the latest last. */
export type PromptCache = ReadonlyArray<Entry>

/** The first part of a prompt that differs from a cached prefix. */
type Change = "model" | "tools" | "system" | "messages"

/** The forecast for one prompt. */
interface Forecast {
  /** Estimated tokens read from the cache. */
  readonly tokens: number
  /** Tokens that would be read if nothing had changed and no time had passed. */
  readonly possible: number
  /** Why fewer tokens are read than possible. */
  readonly lost: Change | "expired" | undefined
}

export const empty: PromptCache = []

/** Milliseconds for which a prefix is cached after its last use. */
const keptFor = 5 * 60_000

/** The smallest number of tokens of a cached prefix. */
const shortest = 1024

const maxEntries = 16

/** Precision of an entry's last use in milliseconds, so that quick turns do not copy entries. */
const precision = 1_000

/** Forecasts a prompt that is sent at `now`, and returns the cache after it. */
export const send = (cache: PromptCache, prompt: Prompt, now: number): Forecast & { readonly cache: PromptCache } => {
  const kept = live(cache, now)
  const fits = fitting(kept, prompt)
  const { lost, possible, tokens } = forecast(cache, prompt, fits)
  return { tokens, possible, lost, cache: keptAfter(kept, prompt, now, fits) }
}

const live = (entries: PromptCache, now: number): PromptCache => {
  const isLive = ({ usedAt }: Entry): boolean => now - usedAt <= keptFor
  return entries.every(isLive) ? entries : entries.filter(isLive)
}

const forecast = (cache: PromptCache, prompt: Prompt, fits: PromptCache): Forecast => {
  const last = cache.at(-1)
  if (last === undefined) return { tokens: 0, possible: 0, lost: undefined }
  const tokens = longest(fits)
  const possible = Math.max(tokens, last.tokens)
  if (tokens === possible) return { tokens, possible, lost: undefined }
  return { tokens, possible, lost: changeOf(last, prompt) ?? "expired" }
}

const keptAfter = (kept: PromptCache, prompt: Prompt, now: number, fits: PromptCache): PromptCache => {
  const { length } = prompt.messages
  const line = lineAfter(kept, longestTo(fits, Infinity))
  const lengths = prompt.system !== null && length > 0 ? [0, length] : [length]
  const added = lengths.flatMap((length) => beginning(prompt, length, fits, line, now))
  const isFit = (entry: Entry): boolean => fits === kept || fits.includes(entry)
  const after: Array<Entry> = []
  for (const entry of kept) {
    if (!isFit(entry)) after.push(entry)
    // Reading a prefix renews it and its own prefixes.
    else if (!added.some(({ length }) => length === entry.length)) {
      after.push(now - entry.usedAt < precision ? entry : { ...entry, usedAt: now })
    }
  }
  after.push(...added)
  return after.length > maxEntries ? after.slice(-maxEntries) : after
}

/** Returns the prefix of a prompt with this many messages, if it is long enough to be cached. */
const beginning = (
  prompt: Prompt,
  length: number,
  fits: PromptCache,
  line: number,
  now: number
): ReadonlyArray<Entry> => {
  const known = longestTo(fits, length)
  let tokens = known?.tokens ?? ofTools(prompt.tools) + estimateSystem(prompt.system)
  for (let index = known?.length ?? 0; index < length; index++) {
    const message = prompt.messages.at(index)
    // The tokens of a cached prefix are known, so its messages are not estimated again.
    if (message !== undefined) tokens += known === undefined ? estimate(message) : estimateOnce(message)
  }
  return tokens < shortest ? [] : [{ ...prompt, length, tokens, usedAt: now, line }]
}

/** Returns the entries that are prefixes of a prompt. */
const fitting = (cache: PromptCache, prompt: Prompt): PromptCache => {
  const longest = longestTo(cache, Infinity)
  // A conversation that only grew has a single line, and all its entries are prefixes.
  if (longest === undefined) return cache
  if (cache.every(({ line }) => line === longest.line) && changeOf(longest, prompt) === undefined) return cache
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

/** Returns the longest entry with at most `length` messages. */
const longestTo = (entries: PromptCache, length: number): Entry | undefined => {
  let found: Entry | undefined
  for (const entry of entries) {
    if (entry.length <= length && (found === undefined || entry.length > found.length)) found = entry
  }
  return found
}

/** Returns the line of an entry that extends a hit: the line of the hit, unless a longer entry extends it already. */
const lineAfter = (cache: PromptCache, hit: Entry | undefined): number => {
  const isExtendable = hit !== undefined && !cache.some(({ length, line }) => line === hit.line && length > hit.length)
  return isExtendable ? hit.line : cache.reduce((most, { line }) => Math.max(most, line), 0) + 1
}

const longest = (entries: PromptCache): number => entries.reduce((most, { tokens }) => Math.max(most, tokens), 0)

/** Returns the first part of an entry that differs in a prompt. Undefined if the entry is a prefix of it. */
const changeOf = (entry: Entry, { messages, model, system, tools }: Prompt): Change | undefined => {
  if (entry.model !== model) return "model"
  if (!isSameTools(entry.tools, tools)) return "tools"
  if (entry.system !== system) return "system"
  // A conversation that only grew still starts with the entry.
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

/** Compares texts by content, because the note with a summary is created again for each prompt. */
const isSameText = (a: Message | undefined, b: Message | undefined): boolean =>
  a === b ||
  (a !== undefined && a.role === b?.role && a.content.every(({ type }) => type === "text") && textOf(a) === textOf(b))

const textOf = ({ content }: Message): string =>
  content.map((part) => (part.type === "text" ? part.text : "\0")).join("\0")
