/**
 * What was said, in short: where it stands in a prompt, and how a conversation keeps it.
 *
 * A prompt has a note in the place of messages that went. A history stays whole:
 * one of its messages tells how many of the first ones were summed up, in which
 * words, and which messages they were, so that no summary is believed of
 * messages that are others now. A run is given it with the last message that it
 * is about.
 *
 * @since 0.1.0
 */
import * as Hash from "effect/Hash"
import * as Blocks from "../Block.ts"
import type { Message } from "../Message.ts"
import * as Messages from "../Message.ts"
import type { RunState } from "../RunState.ts"
import { cut } from "./cut.ts"
import type { JsonObject } from "./json.ts"

// ---------------------------------------------------------------- the note

/** Tokens of a note without a summary. */
export const noteTokens = 50

/** What stands where messages were, within its room. Its facts are for us. */
export const noteOf = (removed: number, summary: string, room: number): Message => {
  const few = cut(Blocks.escape(summary), (room - noteTokens) * 3)
  return Messages.make("user", `[${removed}${few === "" ? removal : inShort + few}]`, {
    metadata: { compaction: { removed } }
  })
}

const removal = " earlier messages of this conversation were removed to save space."
const inShort = `${removal} In short: `

/** What the note among messages says of those that went; nothing without a note, or when it says nothing. */
export const summaryIn = (messages: ReadonlyArray<Message>): string => {
  const note = messages.find(isNote)
  const text = note === undefined ? "" : Messages.text(note)
  const at = text.indexOf(inShort)
  return at < 0 ? "" : text.slice(at + inShort.length, -1)
}

/** Tells a note from what was said. */
export const isNote = (message: Message): boolean => message.metadata !== undefined && "compaction" in message.metadata

/** How many messages went where a note is. */
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

/** What the note among messages says, and of how many; undefined where it says nothing. */
const noted = (messages: ReadonlyArray<Message>): Summed | undefined => {
  const note = messages.find(isNote)
  const summary = summaryIn(messages)
  return note === undefined || summary === "" ? undefined : { count: removedOf(note), summary }
}

/**
 * A history whose last messages are those of a run, which tells what the run's prompt says of the first ones: where it is
 * more than was known, and they are those the run was given. What went of the run itself is told once more.
 */
export const after = (state: RunState, history: ReadonlyArray<Message>): ReadonlyArray<Message> => {
  const note = noted(state.prompt)
  const last = history.at(-1)
  // A note that it was given counts messages of another history.
  if (note === undefined || last === undefined || state.input.some(isNote)) return history
  const count = Math.min(note.count, state.history)
  const digest = digestOf(history, count)
  return digest === digestOf(state.input, count) && count > (known(history)?.count ?? 0)
    ? history.with(-1, marked(last, { summary: note.summary, count, digest }))
    : history
}

/** What is known of the first messages of a history, unless others stand there now. */
export const known = (history: ReadonlyArray<Message>): Summed | undefined => {
  for (const message of history.toReversed()) {
    const { count, digest, summary } = factsOf(message, "summed")
    if (typeof count !== "number" || typeof summary !== "string") continue
    if (count <= history.length && digest === digestOf(history, count)) return { count, summary }
  }
  return undefined
}

/** A history for a run, which is told of it what is known, and nothing else that a message claims. */
export const told = (history: ReadonlyArray<Message>): ReadonlyArray<Message> => {
  const summed = known(history)
  return history.map((message, index) => {
    const plain = isNote(message) ? without(message, "compaction") : message
    return index + 1 === summed?.count ? marked(plain, { summary: summed.summary }) : untold(plain)
  })
}

/** A conversation with a note in the place of what a run was told of in short; undefined where it was told nothing. */
export const shortened = (messages: ReadonlyArray<Message>): ReadonlyArray<Message> | undefined => {
  const at = messages.findLastIndex((message) => summaryOf(message) !== undefined)
  const summary = messages[at] && summaryOf(messages[at])
  return summary === undefined ? undefined : [noteOf(at + 1, summary, Infinity), ...messages.slice(at + 1)]
}

/** A message of a run for others, who may change what stands before it. */
export const untold = (message: Message): Message =>
  summaryOf(message) === undefined ? message : without(message, "summed")

/** What a run was told of a message and all before it. What a history keeps was not compared with it yet. */
const summaryOf = (message: Message): string | undefined => {
  const { digest, summary } = factsOf(message, "summed")
  return typeof summary === "string" && digest === undefined ? summary : undefined
}

/** What messages are known again by. */
const digestOf = (messages: ReadonlyArray<Message>, count: number): number =>
  messages.slice(0, count).reduce((digest, message) => Hash.combine(digest, hashOf(message)), 0)

/** Who said what. Of a medium its kind: a run has it by its id, a history has it whole. */
const hashOf = (message: Message): number => {
  let hash = hashes.get(message)
  if (hash === undefined) {
    const { content, name, role } = message
    const bare = (_: string, value: unknown) => (isMedium(value) ? value.type : value)
    hashes.set(message, (hash = Hash.string(JSON.stringify({ role, name, content }, bare))))
  }
  return hash
}

// A long history is asked for with each message.
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
