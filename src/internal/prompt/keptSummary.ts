/**
 * Summaries of earlier messages, as a note in a prompt and stored with a conversation.
 *
 * In a prompt, a note takes the place of removed messages. A history stays complete: the metadata of one of its
 * messages holds the summary, how many of the first messages it covers, and a digest of them, so that a summary is
 * ignored once they have changed. A run gets the summary as metadata of the last message that it covers.
 */

import * as Hash from "effect/Hash"
import * as Blocks from "../../Block.ts"
import type { Message } from "../../Message.ts"
import * as Messages from "../../Message.ts"
import type { RunState } from "../../RunState.ts"
import * as Facts from "../words/messageFacts.ts"
import { perObject } from "../../kit/perObject.ts"
import { cut } from "../../kit/text.ts"
import { type JsonObject, isRecord } from "../../kit/json.ts"

// ---------------------------------------------------------------- the note

/** Tokens of a note without a summary. */
export const noteTokens = 50

/** Creates the note for removed messages, with as much of their summary as fits `room` tokens. */
export const noteOf = (removed: number, summary: string, room: number): Message => {
  const short = cut(Blocks.escape(summary), (room - noteTokens) * 3)
  return Messages.make("user", `[${removed}${short === "" ? removal : inShort + short}]`, {
    metadata: { compaction: { removed } }
  })
}

const removal = " earlier messages of this conversation were removed to save space."
const inShort = `${removal} In short: `

/** Returns the summary in the note among messages. Empty without a note, and for a note without a summary. */
export const summaryIn = (messages: ReadonlyArray<Message>): string => {
  const note = messages.find(isNote)
  const text = note === undefined ? "" : Messages.text(note)
  const at = text.indexOf(inShort)
  return at < 0 ? "" : text.slice(at + inShort.length, -1)
}

/** Returns whether a message is such a note. */
export const isNote = (message: Message): boolean => message.metadata !== undefined && "compaction" in message.metadata

/** Returns the number of messages that a note replaces. */
export const removedOf = (message: Message): number => {
  const { removed } = factsOf(message, "compaction")
  return typeof removed === "number" ? removed : 0
}

// ---------------------------------------------------------------- kept with a conversation

/** A summary of the first messages of a conversation. */
interface Summed {
  readonly count: number
  readonly summary: string
}

/** Returns the summary in the note among messages, with the number of messages it covers. Undefined without one. */
const noted = (messages: ReadonlyArray<Message>): Summed | undefined => {
  const note = messages.find(isNote)
  const summary = summaryIn(messages)
  return note === undefined || summary === "" ? undefined : { count: removedOf(note), summary }
}

/**
 * Adds the summary that a run made to `history`, which ends with the run's messages: as metadata of its last message.
 * The summary is added only if it covers more messages than the existing one, and if the covered messages are those the
 * run was given. The run's own messages never count as covered.
 */
export const keep = (state: RunState, history: ReadonlyArray<Message>): ReadonlyArray<Message> => {
  const note = noted(state.prompt)
  const last = history.at(-1)
  // A note in the input of the run counts messages of another history.
  if (note === undefined || last === undefined || state.input.some(isNote)) return history
  const count = Math.min(note.count, state.history)
  const digest = digestOf(history, count)
  return digest === digestOf(state.input, count) && count > (kept(history)?.count ?? 0)
    ? history.with(-1, marked(last, { summary: note.summary, count, digest }))
    : history
}

/** Returns the newest summary in a history, unless the messages it covers have changed. */
const kept = (history: ReadonlyArray<Message>): Summed | undefined => {
  for (let index = history.length - 1; index >= 0; index--) {
    const { count, digest, summary } = factsOf(history[index], "summed")
    if (typeof count !== "number" || typeof summary !== "string") continue
    if (count <= history.length && digest === digestOf(history, count)) return { count, summary }
  }
  return undefined
}

/** Returns the history for a run: with its valid summary, and without any other summary in metadata. */
export const forRun = (history: ReadonlyArray<Message>): ReadonlyArray<Message> => {
  if (Facts.factsOf(history).isBare) return history
  const summed = kept(history)
  return history.map((message, index) => {
    const plain = isNote(message) ? without(message, "compaction") : message
    return index + 1 === summed?.count ? marked(plain, { summary: summed.summary }) : unmarked(plain)
  })
}

/** Replaces the messages whose summary a run was given by a note. Undefined without a summary. */
export const shortened = (messages: ReadonlyArray<Message>): ReadonlyArray<Message> | undefined => {
  const at = messages.findLastIndex((message) => summaryOf(message) !== undefined)
  const summary = messages[at] && summaryOf(messages[at])
  return summary === undefined ? undefined : [noteOf(at + 1, summary, Infinity), ...messages.slice(at + 1)]
}

/** Removes the summary from a message of a run, for code that may change the messages before it. */
export const unmarked = (message: Message): Message =>
  summaryOf(message) === undefined ? message : without(message, "summed")

/**
 * Returns the summary of a message and all before it, as given to a run. A summary with a digest belongs to a history
 * and has not been verified.
 */
const summaryOf = (message: Message): string | undefined => {
  const { digest, summary } = factsOf(message, "summed")
  return typeof summary === "string" && digest === undefined ? summary : undefined
}

/** Returns the digest of the first messages, which detects changes later. */
const digestOf = (messages: ReadonlyArray<Message>, count: number): number =>
  messages.slice(0, count).reduce((digest, message) => Hash.combine(digest, hashOf(message)), 0)

/**
 * Returns the hash of a message's role and content. Media count by kind only, because a run holds ids and a history the
 * data.
 */
const hashOf = perObject(({ content, name, role }: Message) =>
  Hash.string(JSON.stringify({ role, name, content }, (_, value: unknown) => (isMedium(value) ? value.type : value)))
)

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

const factsOf = (message: Message | undefined, key: string): { readonly [fact: string]: unknown } => {
  const facts: unknown = message?.metadata?.[key]
  return isRecord(facts) ? facts : noFacts
}

const noFacts = {}
