/**
 * Summaries of what was said: as a note in a prompt, and as a fact that a conversation keeps.
 *
 * In a prompt, a note takes the place of the messages that were taken away. A
 * history stays whole: the metadata of one of its messages says how many of the
 * first messages were summed up, in which words, and by a digest which messages
 * they were, so that no summary is believed once they have changed. A run gets
 * the summary as metadata of the last message that it covers.
 */

import * as Hash from "effect/Hash"
import * as Blocks from "../../Block.ts"
import type { Message } from "../../Message.ts"
import * as Messages from "../../Message.ts"
import type { RunState } from "../../RunState.ts"
import { cut } from "../base/text.ts"
import type { JsonObject } from "../base/json.ts"

// ---------------------------------------------------------------- the note

/** Tokens of a note without a summary. */
export const noteTokens = 50

/** The note in the place of removed messages, with as much of their summary as fits `room` tokens. */
export const noteOf = (removed: number, summary: string, room: number): Message => {
  const few = cut(Blocks.escape(summary), (room - noteTokens) * 3)
  return Messages.make("user", `[${removed}${few === "" ? removal : inShort + few}]`, {
    metadata: { compaction: { removed } }
  })
}

const removal = " earlier messages of this conversation were removed to save space."
const inShort = `${removal} In short: `

/** The summary in the note among messages; empty without a note, or when it has none. */
export const summaryIn = (messages: ReadonlyArray<Message>): string => {
  const note = messages.find(isNote)
  const text = note === undefined ? "" : Messages.text(note)
  const at = text.indexOf(inShort)
  return at < 0 ? "" : text.slice(at + inShort.length, -1)
}

/** Whether a message is such a note. */
export const isNote = (message: Message): boolean => message.metadata !== undefined && "compaction" in message.metadata

/** How many messages a note stands for. */
export const removedOf = (message: Message): number => {
  const { removed } = factsOf(message, "compaction")
  return typeof removed === "number" ? removed : 0
}

// ---------------------------------------------------------------- kept with a conversation

/** A summary of the first messages of a conversation. */
export interface Summed {
  readonly count: number
  readonly summary: string
}

/** The summary in the note among messages, and how many messages it covers; undefined without one. */
const noted = (messages: ReadonlyArray<Message>): Summed | undefined => {
  const note = messages.find(isNote)
  const summary = summaryIn(messages)
  return note === undefined || summary === "" ? undefined : { count: removedOf(note), summary }
}

/**
 * Keeps what a run summed up: `history`, which ends with the run's messages, with the summary of its first messages as
 * metadata of its last one. It is kept only where it covers more than the one that is kept already, and where the
 * messages it covers are those the run was given. None of the run's own messages counts as covered.
 */
export const keep = (state: RunState, history: ReadonlyArray<Message>): ReadonlyArray<Message> => {
  const note = noted(state.prompt)
  const last = history.at(-1)
  // A note among the run's input counts messages of another history.
  if (note === undefined || last === undefined || state.input.some(isNote)) return history
  const count = Math.min(note.count, state.history)
  const digest = digestOf(history, count)
  return digest === digestOf(state.input, count) && count > (kept(history)?.count ?? 0)
    ? history.with(-1, marked(last, { summary: note.summary, count, digest }))
    : history
}

/** The newest summary that a history keeps of its first messages, unless these have changed since. */
const kept = (history: ReadonlyArray<Message>): Summed | undefined => {
  for (const message of history.toReversed()) {
    const { count, digest, summary } = factsOf(message, "summed")
    if (typeof count !== "number" || typeof summary !== "string") continue
    if (count <= history.length && digest === digestOf(history, count)) return { count, summary }
  }
  return undefined
}

/** A history as a run is given it: with the summary that is kept of it, and without whatever else messages claim. */
export const forRun = (history: ReadonlyArray<Message>): ReadonlyArray<Message> => {
  const summed = kept(history)
  return history.map((message, index) => {
    const plain = isNote(message) ? without(message, "compaction") : message
    return index + 1 === summed?.count ? marked(plain, { summary: summed.summary }) : unmarked(plain)
  })
}

/** A conversation with a note in the place of the messages whose summary a run was given; undefined without one. */
export const shortened = (messages: ReadonlyArray<Message>): ReadonlyArray<Message> | undefined => {
  const at = messages.findLastIndex((message) => summaryOf(message) !== undefined)
  const summary = messages[at] && summaryOf(messages[at])
  return summary === undefined ? undefined : [noteOf(at + 1, summary, Infinity), ...messages.slice(at + 1)]
}

/** A message of a run without the summary it was given, for those who may change what stands before it. */
export const unmarked = (message: Message): Message =>
  summaryOf(message) === undefined ? message : without(message, "summed")

/** The summary of a message and all before it, as a run was given it. One with a digest is a history's, not yet checked. */
const summaryOf = (message: Message): string | undefined => {
  const { digest, summary } = factsOf(message, "summed")
  return typeof summary === "string" && digest === undefined ? summary : undefined
}

/** By what the first messages are recognized later. */
const digestOf = (messages: ReadonlyArray<Message>, count: number): number =>
  messages.slice(0, count).reduce((digest, message) => Hash.combine(digest, hashOf(message)), 0)

/** Of who said what. A medium counts by its kind only: a run holds it by id, a history whole. */
const hashOf = (message: Message): number => {
  let hash = hashes.get(message)
  if (hash === undefined) {
    const { content, name, role } = message
    const bare = (_: string, value: unknown) => (isMedium(value) ? value.type : value)
    hashes.set(message, (hash = Hash.string(JSON.stringify({ role, name, content }, bare))))
  }
  return hash
}

// Every message of a chat looks at its whole history again.
const hashes = new WeakMap<Message, number>()

const kinds = new Set<unknown>(["image", "audio", "video", "document"])

const isMedium = (value: unknown): value is { readonly type: unknown } =>
  typeof value === "object" && value !== null && "type" in value && kinds.has(value.type)

// ---------------------------------------------------------------- facts

const marked = (message: Message, summed: JsonObject): Message => made(message, { ...message.metadata, summed })

const without = (message: Message, fact: string): Message => {
  const { [fact]: _, ...metadata } = { ...message.metadata }
  return made(message, metadata)
}

const made = ({ content, name, role }: Message, metadata: JsonObject): Message =>
  Messages.make(role, content, {
    ...(name === undefined ? {} : { name }),
    ...(Object.keys(metadata).length === 0 ? {} : { metadata })
  })

const factsOf = (message: Message, key: string): { readonly [fact: string]: unknown } => {
  const facts: unknown = message.metadata?.[key]
  return typeof facts === "object" && facts !== null ? { ...facts } : {}
}
