/**
 * Keeps a prompt inside its context window, and sets its cache breakpoints.
 *
 * A conversation that does not fit is split before each reply of the model. A reply and the messages up to the next
 * reply are kept or removed together, so a call never loses its result. Old results are shortened first. Then the
 * oldest parts are replaced by a note. Then newer results are shortened. If the conversation still does not fit,
 * unanswered messages before the run's own message are removed, too. The result is smaller and fits; otherwise
 * shortening fails.
 */

import * as Effect from "effect/Effect"
import * as Contents from "../../Content.ts"
import type { Content } from "../../Content.ts"
import { ContextWindowExceeded } from "../../KernelError.ts"
import * as Messages from "../../Message.ts"
import type { Message } from "../../Message.ts"
import type { Expense } from "../../Usage.ts"
import { logIgnored } from "../../kit/foreignCode.ts"
import { deep } from "../../kit/redact.ts"
import { isSame } from "../words/messageFacts.ts"
import * as KeptSummary from "./keptSummary.ts"
import { isNote, noteOf, noteTokens, removedOf, summaryIn } from "./keptSummary.ts"
import type { Compaction, Prompt, PromptContext } from "./promptTypes.ts"
import * as Tokens from "./tokenEstimate.ts"

/** Fails if the prompt does not fit the agent's window. The conversation does not change. */
export const fitted = Effect.fnUntraced(function* (
  context: PromptContext,
  system: string | null
): Effect.fn.Return<undefined, ContextWindowExceeded> {
  const { contextWindow, reservedOutputTokens } = context.agent
  if (contextWindow === undefined) return undefined
  const limit = contextWindow - reservedOutputTokens
  const conversation = yield* Tokens.ofMessages(context.state.prompt, context.counter)
  const estimated = (yield* around(context, system)) + conversation
  return estimated > limit ? yield* new ContextWindowExceeded({ estimated, limit }) : undefined
})

/**
 * Shortens a conversation that exceeds its share of the window. Returns undefined for a conversation that may stay as
 * it is. A known summary replaces the messages it covers, so only later messages are summarized.
 */
export const compacted = Effect.fnUntraced(function* <R>(
  context: PromptContext,
  system: string | null,
  { keep = 2, summarize, target = 0.5, trigger = 0.9 }: Compaction<R>
): Effect.fn.Return<Pick<Prompt, "messages" | "spent"> | undefined, ContextWindowExceeded, R> {
  const { agent, counter, model, recorded, redactor, state } = context
  const contextWindow = agent.contextWindow ?? model.contextWindow
  if (contextWindow === undefined) return undefined
  const beside = yield* around(context, system)
  const limit = contextWindow - agent.reservedOutputTokens - beside
  const now = yield* Tokens.ofMessages(state.prompt, counter)
  if (now <= limit * trigger) return undefined
  const withSummary = KeptSummary.shortened(state.prompt)
  const size = withSummary === undefined ? now : yield* Tokens.ofMessages(withSummary, counter)
  const known = size < now ? withSummary : undefined
  if (known !== undefined && size <= limit * trigger) return { messages: known }
  let spent: Expense | undefined
  const shorter = compact(known ?? state.prompt, {
    limit,
    target: Math.floor(limit * target),
    keep,
    pinned: state.input.at(-1),
    count: (message) => Tokens.ofMessage(message, counter),
    summarize:
      summarize &&
      ((messages) =>
        (recorded === undefined
          ? summarize(redactor === undefined ? messages : deep(messages, redactor.text), context)
          : Effect.succeed(recorded.summary)
        ).pipe(
          Effect.map((summary) => {
            if (typeof summary === "string") return summary
            spent = summary.spent
            return summary.text
          }),
          Effect.catchCause((cause) => Effect.as(logIgnored("a conversation was not summarized")(cause), ""))
        ))
  })
  // Between the trigger and the limit, shortening is optional.
  const patient =
    Math.min(now, size) <= limit
      ? Effect.catchTag(shorter, "ContextWindowExceeded", () => Effect.succeed(known))
      : shorter
  const messages = yield* Effect.mapError(
    patient,
    ({ estimated }) => new ContextWindowExceeded({ estimated: estimated + beside, limit: limit + beside })
  )
  return { ...(messages === undefined ? {} : { messages }), ...(spent === undefined ? {} : { spent }) }
})

/** Returns the ends of the previous prompt and of this one, because both prefixes will be sent again. */
export const breakpoints = (messages: ReadonlyArray<Message>): ReadonlyArray<number> => {
  const last = messages.length - 1
  const before = messages.findLastIndex(({ role }) => role === "assistant") - 1
  return [before, last].filter((index) => index >= 0)
}

/** The sizes to shorten to, and the messages to keep. */
export interface Settings<R = never> {
  /** The largest number of tokens. */
  readonly limit: number
  /** The number of tokens to aim for. */
  readonly target: number
  /** How many of the newest parts to keep unchanged, if possible. */
  readonly keep: number
  /** The run's own message, which is always kept. May be an equal copy that was read from a journal. */
  readonly pinned: Message | undefined
  readonly count: (message: Message) => Effect.Effect<number>
  /** Summarizes the removed messages in a few words. */
  readonly summarize: ((messages: ReadonlyArray<Message>) => Effect.Effect<string, never, R>) | undefined
}

/** Shortens a conversation. Fails if the parts that must stay do not fit. */
export const compact = Effect.fnUntraced(function* <R = never>(
  messages: ReadonlyArray<Message>,
  settings: Settings<R>
): Effect.fn.Return<ReadonlyArray<Message>, ContextWindowExceeded, R> {
  const { count, keep, limit, pinned, summarize, target } = settings
  const all = yield* Effect.forEach(messages, (message) =>
    Effect.map(count(message), (tokens): Counted => ({ message, tokens }))
  )
  const note = all.find(({ message }) => isNote(message))?.message
  const draft = new Draft(
    { count, pinned: among(messages, pinned) },
    all.filter(({ message }) => message !== note)
  )
  // Room for the note, which is created last.
  const room = noteTokens + (summarize === undefined ? 0 : Math.min(summaryTokens, Math.floor(target / 4)))

  for (let part = 0; part < draft.parts.length - keep; part++) yield* draft.shorten(part, stub, target)
  draft.drop(keep, target - room)
  for (const characters of [8_000, 2_000, stub]) {
    for (let part = 0; part < draft.parts.length; part++) yield* draft.shorten(part, characters, limit - room)
  }
  draft.drop(1, limit - room)
  const before = sum(all.map(({ tokens }) => tokens))
  if (before > limit) {
    draft.isolate()
    draft.drop(1, limit - room)
  }

  const { gone } = draft
  const removedMessages = note === undefined ? gone : [note, ...gone]
  const left = Math.min(limit, before - 1) - draft.tokens
  // Skip the summary if the conversation would still be too long or no shorter.
  const isWorthIt = gone.length > 0 && left >= 2 * noteTokens && summarize !== undefined
  const summary = isWorthIt ? yield* summarize(removedMessages) : summaryIn(messages)
  const removed = gone.length + (note === undefined ? 0 : removedOf(note))
  const head = gone.length === 0 ? note : noteOf(removed, summary, Math.max(noteTokens, Math.min(room, left)))
  const kept = head === undefined ? draft.messages : [head, ...draft.messages]
  const after = yield* Effect.forEach(kept, count)
  // Count again: a conversation that only seems shorter would be compacted in every turn.
  const estimated = sum(after)
  if (estimated >= before || estimated > limit) {
    return yield* new ContextWindowExceeded({ estimated, limit })
  }
  return kept
})

/** A message and its tokens. */
interface Counted {
  readonly message: Message
  readonly tokens: number
}

/** Returns the tokens of everything except the conversation. */
const around = ({ counter, tools }: PromptContext, system: string | null): Effect.Effect<number> =>
  Effect.map(Tokens.ofSystem(system, counter), (tokens) => tokens + Tokens.ofTools(tools))

/** Characters kept of a shortened result. */
const stub = 200
/** Results with fewer tokens are not shortened. */
const small = 100
/** The largest number of tokens of a summary. */
const summaryTokens = 1_000

/** Returns the message of a conversation that equals this one, which may have been copied or read from a journal. */
const among = (messages: ReadonlyArray<Message>, message: Message | undefined): Message | undefined =>
  message === undefined || messages.includes(message) ? message : messages.findLast((other) => isSame(other, message))

const sum = (numbers: ReadonlyArray<number>): number => numbers.reduce((total, number) => total + number, 0)

/** A conversation that is being shortened. */
class Draft {
  readonly parts: Array<ReadonlyArray<Counted>>
  readonly gone: Array<Message> = []
  readonly #settings: Pick<Settings, "pinned" | "count">
  readonly #stayed: Array<Message> = []
  #tokens: number

  constructor(settings: Pick<Settings, "pinned" | "count">, messages: ReadonlyArray<Counted>) {
    this.#settings = settings
    this.#tokens = sum(messages.map(({ tokens }) => tokens))
    this.parts = partsOf(messages)
  }

  get tokens(): number {
    return this.#tokens
  }

  get messages(): ReadonlyArray<Message> {
    return [...this.#stayed, ...this.parts.flat().map(({ message }) => message)]
  }

  /** Shortens the results of a part, unless the conversation is short enough. */
  readonly shorten = Effect.fnUntraced(
    { self: this },
    function* (this: Draft, at: number, characters: number, until: number) {
      const part = this.parts[at]?.slice() ?? []
      for (const [index, { message, tokens }] of part.entries()) {
        if (this.#tokens <= until) break
        if (message === this.#settings.pinned || tokens <= Math.max(small, characters / 4)) continue
        const shorter = shortened(message, characters)
        if (shorter === undefined) continue
        const size = yield* this.#settings.count(shorter)
        if (size >= tokens) continue
        part[index] = { message: shorter, tokens: size }
        this.#tokens -= tokens - size
      }
      this.parts[at] = part
    }
  )

  /** Removes the oldest parts, except `leave` of them, until the conversation is short enough. */
  drop(leave: number, until: number): void {
    while (this.#tokens > until && this.parts.length > leave) {
      for (const { message, tokens } of this.parts.shift() ?? []) {
        if (message === this.#settings.pinned) this.#stayed.push(message)
        else {
          this.gone.push(message)
          this.#tokens -= tokens
        }
      }
    }
  }

  /** Splits the run's own message from the messages without a reply before it, so that these can be removed, too. */
  isolate(): void {
    const part = this.parts[0] ?? []
    const at = part.findIndex(({ message }) => message === this.#settings.pinned)
    if (at > 0) this.parts.splice(0, 1, part.slice(0, at), part.slice(at))
  }
}

// ---------------------------------------------------------------- parts

/** Splits a conversation before each reply of the model. The messages before the first reply are a part, too. */
const partsOf = (messages: ReadonlyArray<Counted>): Array<ReadonlyArray<Counted>> => {
  const parts: Array<Array<Counted>> = []
  for (const counted of messages) {
    const last = parts.at(-1)
    if (last === undefined || counted.message.role === "assistant") parts.push([counted])
    else last.push(counted)
  }
  return parts
}

// ---------------------------------------------------------------- results

const opening = /^<block type="(?:result|error)"(?: name="[^"]{0,512}")?>/

/** Returns a result with only the start of its text. Undefined for a message that is not a result. */
const shortened = (message: Message, characters: number): Message | undefined => {
  if (message.role === "tool") {
    const content = message.content.map((part) =>
      part.type === "tool_result" ? Contents.withContent(part, [brief(part.content, characters)]) : part
    )
    return Messages.make("tool", content)
  }
  const [first] = message.content
  if (message.role !== "user" || first?.type !== "text") return undefined
  const tag = opening.exec(first.text)?.[0]
  if (tag === undefined) return undefined
  const body = first.text.slice(tag.length).replace(/<\/block>$/, "")
  const media = message.content.filter(Contents.isMedia).length
  return Messages.user(`${tag}${briefText(body, characters, media)}</block>`)
}

const brief = (content: ReadonlyArray<Content>, characters: number): Content => {
  const media = content.filter(Contents.isMedia).length
  const texts = content.filter((part) => !Contents.isMedia(part)).map(Contents.toText)
  return Contents.text(briefText(texts.join("\n"), characters, media))
}

const briefText = (text: string, characters: number, media: number): string => {
  const left = text.slice(0, characters).toWellFormed()
  const removed = [
    ...(text.length > characters ? [`${text.length - characters} characters`] : []),
    ...(media === 0 ? [] : [media === 1 ? "a medium" : `${media} media`])
  ]
  return removed.length === 0 ? text : `${left}… [${removed.join(" and ")} removed to save space]`
}
