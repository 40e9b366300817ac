/**
 * Repairs a request that a vendor refused: without the content that it names, or shorter.
 *
 * Vendors name a content by its place in their own list of messages, by its kind, or both. The place leads to a message
 * of the conversation. If it leads nowhere, every content of the kind is left out. A vendor may also refuse the schema
 * of a typed answer, without which the run continues.
 */

import * as Effect from "effect/Effect"
import * as Contents from "../../Content.ts"
import type { Content } from "../../Content.ts"
import type { ProviderError } from "../../KernelError.ts"
import type { Message } from "../../Message.ts"
import type { LeftOut, Repair } from "../../RunModel.ts"
import { commonPrefix } from "../../kit/lists.ts"
import { ofMessage, ofMessages } from "../prompt/tokenEstimate.ts"
import { compact } from "../prompt/window.ts"
import type { Run } from "../run/run.ts"

/** Returns the repair of a refused request. Undefined if the refusal names nothing that can be left out. */
export const repairOf = Effect.fnUntraced(function* (
  run: Run,
  error: ProviderError
): Effect.fn.Return<Repair | undefined> {
  const { input, prompt, system } = run.state
  const words = [error.vendor?.parameter, error.vendor?.message, error.vendor?.code].join(" ")
  const { reason } = error
  if (reason !== "context_length" && reason !== "invalid_request") return undefined
  if (reason === "invalid_request" && isOfOutput(run, words)) {
    return { reason, leftOut: [{ type: "output" }], prompt: { base: prompt.length, append: [] } }
  }
  const messages =
    reason === "context_length"
      ? yield* shorter(run, words)
      : without(prompt, named(words), system !== null, input.at(-1))
  if (messages === undefined) return undefined
  const base = commonPrefix(prompt, messages)
  const leftOut = differences(prompt, messages)
  return { reason, leftOut, prompt: { base, append: messages.slice(base) } }
})

// ---------------------------------------------------------------- what the vendor names

/** A place in a list of the request, counted from 0. */
interface Place {
  readonly list: "messages" | "input" | "contents"
  readonly at: number
  /** Whether the index follows a dot, as in the list of Anthropic, which holds no system message. */
  readonly isDotted: boolean
}

/** Returns whether a vendor refuses the schema of a typed answer, which was part of the request. */
const isOfOutput = ({ agent, state }: Run, words: string): boolean =>
  agent.typed && agent.dialect === "tools" && !state.outputRefused && outputWords.test(words)

const outputWords =
  /output_(config|format)|response_format|text\.format|response.?(json.?)?schema|response.?mime.?type|structured.?output|compiled grammar|schemas? (contains|is) too (many|complex)/i

interface Named {
  readonly place: Place | undefined
  readonly isKind: ((part: Content) => boolean) | undefined
}

const place = /\b(messages|input|contents)(?:\.?\[(\d{1,6})\]|\.(\d{1,6}))/

const kinds: ReadonlyArray<readonly [words: RegExp, isKind: (part: Content) => boolean]> = [
  [/signature|encrypted|(thinking|reasoning|thought)\W*(block|content|item|part)/i, ({ type }) => type === "thinking"],
  [/\bpdf\b|document|file_data|input_file/i, ({ type }) => type === "document"],
  [/audio/i, ({ type }) => type === "audio"],
  [/video/i, ({ type }) => type === "video"],
  [/image|picture|pixels/i, ({ type }) => type === "image"],
  [/media|mime|base64|inline_?data|payload size|(request|body|entity)_?\s?(is )?too_?\s?large/i, Contents.isMedia]
]

const named = (words: string): Named => {
  const [, list, bracketed, dotted] = place.exec(words) ?? []
  const isList = list === "messages" || list === "input" || list === "contents"
  return {
    place: isList ? { list, at: Number(bracketed ?? dotted), isDotted: dotted !== undefined } : undefined,
    isKind: kinds.find(([pattern]) => pattern.test(words))?.[1]
  }
}

/** Returns the index of the message at a place, by the number of items that a message has in the vendor's list. */
const messageAt = (
  messages: ReadonlyArray<Message>,
  { at, isDotted, list }: Place,
  hasSystem: boolean
): number | undefined => {
  const isMerged = isDotted || list === "contents"
  let next = hasSystem && !isMerged ? 1 : 0
  for (let index = 0; index < messages.length; index++) {
    const message = messages[index]
    if (message === undefined) continue
    const isSame = message.role !== "user" && message.role === messages[index - 1]?.role
    if (isMerged) next += isSame && (message.role === "tool" || isDotted) ? 0 : 1
    else
      next +=
        list === "input" && message.role === "assistant" ? Math.max(1, message.content.length) : resultsIn(message)
    if (at < next) return index
  }
  return undefined
}

const resultsIn = ({ content }: Message): number =>
  Math.max(1, content.filter(({ type }) => type === "tool_result").length)

// ---------------------------------------------------------------- leaving out

/** Returns the messages without what the vendor names. Undefined if they hold nothing of it. */
const without = (
  messages: ReadonlyArray<Message>,
  { isKind, place }: Named,
  hasSystem: boolean,
  asked: Message | undefined
): ReadonlyArray<Message> | undefined => {
  const at = place === undefined ? undefined : messageAt(messages, place, hasSystem)
  if (isKind !== undefined) {
    const there = at === undefined ? messages : replaced(messages, isKind, at)
    const changed = there === messages ? replaced(messages, isKind) : there
    if (changed !== messages) return changed
  }
  return at === undefined ? undefined : withoutMessage(messages, at, asked)
}

/** Replaces the contents of a kind in the message at an index, or in all. Returns the same list if there are none. */
const replaced = (
  messages: ReadonlyArray<Message>,
  isKind: (part: Content) => boolean,
  at?: number
): ReadonlyArray<Message> => {
  let isChanged = false
  const changed = messages.map((message, index) => {
    const content = at === undefined || at === index ? withoutKind(message.content, isKind) : message.content
    isChanged ||= content !== message.content
    return content === message.content ? message : { ...message, content }
  })
  return isChanged ? changed : messages
}

const withoutKind = (content: ReadonlyArray<Content>, isKind: (part: Content) => boolean): ReadonlyArray<Content> => {
  let isChanged = false
  const kept = content.flatMap((part): ReadonlyArray<Content> => {
    if (part.type === "tool_result") {
      const inner = withoutKind(part.content, isKind)
      isChanged ||= inner !== part.content
      return inner === part.content ? [part] : [Contents.withContent(part, inner)]
    }
    if (!isKind(part)) return [part]
    isChanged = true
    return part.type === "thinking" ? [] : [noteOf(part)]
  })
  return isChanged ? kept : content
}

const noteOf = ({ type }: Content): Content => Contents.text(`[${type} left out: the model's service refused it]`)

/** Replaces a whole message and the results of its calls. The text that the run was asked stays. */
const withoutMessage = (
  messages: ReadonlyArray<Message>,
  at: number,
  asked: Message | undefined
): ReadonlyArray<Message> | undefined => {
  const message = messages[at]
  if (message === undefined || message === asked) return undefined
  const note = Contents.text("[message left out: the model's service refused it]")
  const results = message.content.flatMap((part) =>
    part.type === "tool_result" ? [Contents.withContent(part, [note])] : []
  )
  const calls = new Set(message.content.flatMap((part) => (part.type === "tool_use" ? [part.callId] : [])))
  const changed = messages.with(at, { ...message, content: results.length === 0 ? [note] : results })
  if (calls.size === 0) return changed
  return changed.flatMap((other) => {
    const content = other.content.filter((part) => part.type !== "tool_result" || !calls.has(part.callId))
    if (content.length === other.content.length) return [other]
    return content.length === 0 ? [] : [{ ...other, content }]
  })
}

// ---------------------------------------------------------------- a prompt that is too long

/** Shortens the conversation below what was refused, or replaces its media if it cannot be shortened. */
const shorter = Effect.fnUntraced(function* (
  { counter, restore, state }: Run,
  words: string
): Effect.fn.Return<ReadonlyArray<Message> | undefined> {
  const { input, prompt } = state
  const now = yield* restore(ofMessages(prompt, counter))
  const compactTo = (limit: number, keep: number) =>
    compact(prompt, {
      limit,
      target: Math.floor(limit * 0.75),
      keep,
      pinned: input.at(-1),
      count: (message) => ofMessage(message, counter),
      summarize: undefined
    })
  const compacted = compactTo(Math.floor(now * shareIn(words)), 2).pipe(
    Effect.catchTag("ContextWindowExceeded", () => compactTo(now - 1, 1)),
    Effect.catchTag("ContextWindowExceeded", () => Effect.succeed(replaced(prompt, Contents.isMedia)))
  )
  const messages = yield* restore(compacted)
  return messages === prompt ? undefined : messages
})

/** Returns the share of a prompt that fits, from the numbers of tokens that the vendor names. */
const shareIn = (words: string): number => {
  const numbers = (words.match(/\d[\d,]{2,9}/g) ?? []).map((number) => Number(number.replaceAll(",", "")))
  const share = Math.min(...numbers) / Math.max(...numbers)
  return share > 0.05 && share < 1 ? share * 0.9 : 0.7
}

// ---------------------------------------------------------------- the event

/** Returns the contents and messages that a repair left out, by their place before it. */
const differences = (before: ReadonlyArray<Message>, after: ReadonlyArray<Message>): ReadonlyArray<LeftOut> => {
  const kept = new Set(after)
  return before.flatMap((message, index): ReadonlyArray<LeftOut> => {
    if (kept.has(message)) return []
    const next = after.length === before.length ? new Set(flat(after[index]?.content ?? [])) : undefined
    const gone = next === undefined ? [] : flat(message.content).filter((part) => !next.has(part))
    return gone.every(({ type }) => type === "text")
      ? [{ type: "message", message: index }]
      : gone.map((part) => ({
          type: part.type,
          message: index,
          ...(Contents.isMedia(part) && part.mediaType !== undefined ? { mediaType: part.mediaType } : {})
        }))
  })
}

const flat = (content: ReadonlyArray<Content>): ReadonlyArray<Content> =>
  content.flatMap((part) => (part.type === "tool_result" ? flat(part.content) : [part]))
