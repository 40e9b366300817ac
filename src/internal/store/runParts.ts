/**
 * Splits a state into parts, each with the changes since the previous one.
 *
 * A run is loaded from its parts, so the whole journal need not be folded. A part always holds a state between two
 * turns. Each turn is in one part, so the parts of a run are never larger than its journal.
 *
 * A part holds the turns that ended since, everything else of the state apart from the conversation, and how the
 * conversation changed. Messages are given by the turn they come from where possible, so no part repeats the contents
 * of another.
 */

import * as Schema from "effect/Schema"
import type { Content } from "../../Content.ts"
import type { Message } from "../../Message.ts"
import { stateFacts, turn } from "../state/modelSchema.ts"
import type { RunState, Turn } from "../../RunState.ts"
import { commonPrefix } from "../../kit/lists.ts"
import { perObject } from "../../kit/perObject.ts"
import { absent, lazily, mapped, type TypeOf } from "../../kit/schemas.ts"
import { type ContentCodec, message, messages, plainContent, wire } from "../words/messageSchema.ts"
import { replyMessages } from "../state/state.ts"
import { type Earlier, earlierSchema, format, oldest } from "./runWire.ts"

/** The position up to which a state is written: the number of its turns, and its conversation then. */
export interface Mark {
  readonly turns: number
  readonly prompt: ReadonlyArray<Message>
}

/** The mark of an unwritten state. */
export const start: Mark = { turns: 0, prompt: [] }

/** Messages of a conversation: a range of the input, the messages of a range of turns, or a single message. */
const entry = perObject((content: ContentCodec) => {
  const range = Schema.Tuple([Schema.Natural, Schema.Natural])
  return Schema.Union([
    Schema.Struct({ input: range }),
    Schema.Struct({ turns: range }),
    Schema.Struct({ message: message(content) })
  ])
})

type Entry = TypeOf<typeof entry>

/** The stored form of a part of a state. */
export const partSchema = perObject((content: ContentCodec) =>
  Schema.Struct({
    format: Schema.Literals([oldest, format]),
    /** Messages before those of the input, in the first part. */
    earlier: Schema.optionalKey(earlierSchema()),
    ...stateFacts().fields,
    currentTurn: absent(turn(content)),
    /** Only in the first part. */
    input: Schema.optionalKey(messages(content)),
    /** The number of turns in earlier parts. */
    from: Schema.Natural,
    turns: Schema.Array(turn(content)),
    /** The number of messages kept from the conversation of the previous part, and the messages after them. */
    prompt: Schema.Struct({ base: Schema.Natural, append: Schema.Array(entry(content)) })
  })
)

interface Part extends TypeOf<typeof partSchema> {}

const partWriter = lazily(() => mapped(partSchema(plainContent()), wire))

/** Writes the part of a state after a mark. The first part has the input without the earlier messages it refers to. */
export const write = (state: RunState, mark: Mark, earlier?: Earlier): object => {
  const part = split(state, mark)
  return partWriter()(
    earlier === undefined || part.input === undefined
      ? { format: oldest, ...part }
      : { format, earlier, ...part, input: part.input.slice(earlier.messages) }
  )
}

const split = (state: RunState, mark: Mark): Omit<Part, "format" | "earlier"> => {
  const { input, prompt, turns, ...rest } = state
  const base = commonPrefix(mark.prompt, prompt)
  return {
    ...rest,
    ...(mark === start ? { input } : {}),
    from: mark.turns,
    turns: turns.slice(mark.turns),
    prompt: { base, append: entries(state, base, base === mark.prompt.length ? mark.turns : 0) }
  }
}

/** Joins consecutive parts, of which the first one may refer to earlier messages. */
export const join = (earlier: ReadonlyArray<Message>) => {
  // Mutated in place, because they are not visible before the last part is added.
  const turns: Array<Turn> = []
  const prompt: Array<Message> = []
  let input: ReadonlyArray<Message> | undefined
  let rest: Omit<RunState, "turns" | "prompt" | "input"> | undefined

  /** Adds the next part. Returns false if it does not fit. */
  const add = (part: Part): boolean => {
    const { earlier: shared, format: _, from, input: own, prompt: change, turns: added, ...more } = part
    if (shared !== undefined && shared.messages !== earlier.length) return false
    if (rest === undefined) input = shared === undefined || own === undefined ? own : earlier.concat(own)
    if (input === undefined || from !== turns.length || change.base > prompt.length) return false
    rest = more
    for (const turn of added) turns.push(turn)
    prompt.length = change.base
    return extend(input, change.append)
  }

  const extend = (input: ReadonlyArray<Message>, entries: ReadonlyArray<Entry>): boolean => {
    // Each message once and in order, so that a damaged part cannot expand beyond the size of its run.
    let nextInput = 0
    let nextTurn = 0
    for (const entry of entries) {
      if ("message" in entry) prompt.push(entry.message)
      else if ("input" in entry) {
        const [start, end] = entry.input
        if (start < nextInput || end > input.length) return false
        for (const message of input.slice(start, end)) prompt.push(message)
        nextInput = end
      } else {
        const [start, end] = entry.turns
        if (start < nextTurn || end > turns.length) return false
        for (const turn of turns.slice(start, end)) for (const message of replyMessages(turn)) prompt.push(message)
        nextTurn = end
      }
    }
    return true
  }

  /** Returns the state after the last part. */
  const state = (): RunState | undefined =>
    rest === undefined || input === undefined ? undefined : { ...rest, input, turns, prompt }

  return { add, state }
}

/** Returns the conversation from `base` on, as references to the input and to turns from `first` on where possible. */
const entries = ({ input, prompt, turns }: RunState, base: number, first: number): ReadonlyArray<Entry> => {
  const inputs = new Map(base < input.length ? input.map((message, index) => [message, index]) : [])
  const answers = new Map<Message, number>()
  for (let index = first; index < turns.length; index++) {
    const message = turns[index]?.message
    if (message !== undefined) answers.set(message, index)
  }
  const out: Array<Entry | Range> = []
  const next = { input: 0, turns: 0 }
  const addRange = (of: Range["of"], index: number) => {
    const last = out.at(-1)
    if (last !== undefined && "of" in last && last.of === of && last.end === index) last.end += 1
    else out.push({ of, start: index, end: index + 1 })
    next[of] = index + 1
  }
  let at = base
  while (at < prompt.length) {
    const message = prompt[at]
    if (message === undefined) break
    const fromInput = inputs.get(message)
    const fromTurn = answers.get(message)
    const count = fromTurn === undefined || fromTurn < next.turns ? 0 : addedBy(turns[fromTurn], prompt, at)
    if (fromInput !== undefined && fromInput >= next.input) {
      addRange("input", fromInput)
      at += 1
    } else if (fromTurn !== undefined && count > 0) {
      addRange("turns", fromTurn)
      at += count
    } else {
      out.push({ message })
      at += 1
    }
  }
  return out.map((entry) => {
    if (!("of" in entry)) return entry
    const range = [entry.start, entry.end] as const
    return entry.of === "input" ? { input: range } : { turns: range }
  })
}

interface Range {
  readonly of: "input" | "turns"
  readonly start: number
  end: number
}

/** Returns how many messages a turn added to the conversation at `at`. Zero if the messages there differ. */
const addedBy = (turn: Turn | undefined, prompt: ReadonlyArray<Message>, at: number): number => {
  const added = turn === undefined ? [] : replyMessages(turn)
  return added.every((message, index) => same(message, prompt[at + index])) ? added.length : 0
}

// The texts around results are created each time, but the results are shared.
const same = (a: Message, b: Message | undefined): boolean =>
  a === b ||
  (b !== undefined &&
    a.role === b.role &&
    a.name === b.name &&
    a.metadata === b.metadata &&
    a.content.length === b.content.length &&
    a.content.every((part, index) => sameContent(part, b.content[index])))

const sameContent = (a: Content, b: Content | undefined): boolean => {
  if (a === b) return true
  if (a.type === "text") return b?.type === "text" && a.text === b.text && fields(a) === 2 && fields(b) === 2
  return (
    a.type === "tool_result" &&
    b?.type === "tool_result" &&
    a.callId === b.callId &&
    a.isError === b.isError &&
    a.content.length === b.content.length &&
    a.content.every((part, index) => sameContent(part, b.content[index])) &&
    fields(a) === fields(b)
  )
}

const fields = (content: Content): number => Object.keys(content).length
