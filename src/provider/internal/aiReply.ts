/**
 * Checks and converts replies for effect/ai: complete, bounded in size, with a start and end around every text and
 * thought.
 */

import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as AiError from "effect/ai/AiError"
import type * as LanguageModel from "effect/ai/LanguageModel"
import type * as Response from "effect/ai/Response"
import * as Stream from "effect/Stream"
import { ProviderError } from "../../KernelError.ts"
import * as Limits from "../../Limits.ts"
import type { ProviderShape } from "../../Provider.ts"
import type { StreamPart } from "../../StreamPart.ts"

/** The name of the `LanguageModel` method for errors. */
export type Method = "generateText" | "streamText"

/** Fails if the reply ends without a finish part, because then it was cut off. */
export const finished = (
  parts: Stream.Stream<StreamPart, ProviderError>,
  { name: provider }: ProviderShape
): Stream.Stream<StreamPart, ProviderError> =>
  Stream.suspend(() => {
    let isFinished = false
    const seen = Stream.mapArray(parts, (all) => {
      isFinished ||= all.some((part) => part.type === "finish")
      return all
    })
    const cut = new ProviderError({ provider, reason: "incomplete", detail: "the reply ended before it was finished" })
    return Stream.concat(
      seen,
      Stream.suspend(() => (isFinished ? Stream.empty : Stream.fail(cut)))
    )
  })

/** Fails if a call was required and the reply has none. */
export const checked = (
  parts: Stream.Stream<StreamPart, AiError.AiError>,
  { toolChoice }: LanguageModel.ProviderOptions,
  provider: ProviderShape,
  method: Method
): Stream.Stream<StreamPart, AiError.AiError> => {
  const isRequired =
    toolChoice === "required" ||
    (typeof toolChoice === "object" && ("tool" in toolChoice || toolChoice.mode === "required"))
  if (!isRequired) return parts
  let called = false
  const silent = AiError.make({
    module: provider.name,
    method,
    reason: new AiError.InvalidOutputError({ description: "the model called no tool though one was required" })
  })
  return Stream.mapEffect(parts, (part) => {
    called ||= part.type === "tool-call"
    return part.type === "finish" && !called ? Effect.fail(silent) : Effect.succeed(part)
  })
}

/** Adds the start and end of each text and thought: effect/ai drops deltas that have neither. */
export const framed = <E>(parts: Stream.Stream<StreamPart, E>): Stream.Stream<StreamPart, E> =>
  Stream.suspend(() => {
    const ends = new Map<string, StreamPart>()
    const told = (kind: "text" | "reasoning", part: Said): Parts => {
      const key = `${kind} ${part.id}`
      const isBegun = ends.has(key) || part.type === `${kind}-start`
      if (part.type === `${kind}-end`) ends.delete(key)
      else if (!ends.has(key)) ends.set(key, { type: `${kind}-end`, id: part.id })
      return isBegun ? [part] : [{ type: `${kind}-start`, id: part.id }, part]
    }
    const whole = (part: StreamPart): Parts => {
      switch (part.type) {
        case "text-start":
        case "text-delta":
        case "text-end":
          return told("text", part)
        case "reasoning-start":
        case "reasoning-delta":
        case "reasoning-end":
          return told("reasoning", part)
        case "finish":
          return Arr.append([...ends.values()], part)
        default:
          return [part]
      }
    }
    return Stream.mapArray(parts, Arr.flatMap(whole))
  })

type Said = Extract<StreamPart, { readonly type: `${"text" | "reasoning"}-${string}` }>
type Parts = Arr.NonEmptyReadonlyArray<StreamPart>

/** Collects all parts of a reply, up to the size limit, which applies to every provider. */
export const collected = Effect.fnUntraced(function* (
  parts: Stream.Stream<StreamPart, AiError.AiError>,
  provider: ProviderShape
) {
  const { replyLength } = yield* Limits.Limits
  let size = 0
  const bounded = Stream.mapEffect(parts, (part) => {
    size += "delta" in part ? Math.max(1, part.delta.length) : 1
    return size > replyLength ? Effect.fail(tooLarge(provider, replyLength)) : Effect.succeed(part)
  })
  return yield* Stream.runCollect(bounded)
})

const tooLarge = (provider: ProviderShape, replyLength: number) =>
  AiError.make({
    module: provider.name,
    method: "generateText",
    reason: new AiError.InvalidResponseError({ description: `the reply is too large: replyLength is ${replyLength}` })
  })

/** Joins the parts of a whole reply, so that each text and each thought is one piece. */
export const whole = (parts: ReadonlyArray<StreamPart>, isJson: boolean): Array<Response.PartEncoded> => {
  const found: Array<Response.PartEncoded> = []
  let text = ""
  let thinking: { text: string; metadata: StreamPart["metadata"] } | undefined
  const endText = () => {
    if (text !== "") found.push({ type: "text", text: isJson ? unfenced(text) : text })
    text = ""
  }
  const endThinking = (last: StreamPart["metadata"]) => {
    found.push({ type: "reasoning", text: thinking?.text ?? "", metadata: { ...thinking?.metadata, ...last } })
    thinking = undefined
  }
  // A provider may omit the end of its thinking.
  const endBoth = () => {
    if (thinking !== undefined) endThinking(undefined)
    endText()
  }
  for (const part of parts) {
    switch (part.type) {
      case "text-delta":
        text += part.delta
        break
      case "reasoning-start":
        endBoth()
        thinking = { text: "", metadata: part.metadata }
        break
      case "reasoning-delta":
        if (thinking === undefined) endText()
        thinking ??= { text: "", metadata: undefined }
        thinking.text += part.delta
        break
      case "reasoning-end":
        endThinking(part.metadata)
        break
      case "response-metadata":
        endText()
        found.push(part)
        break
      case "source":
        found.push(part)
        break
      case "tool-call":
      case "file":
      case "finish":
        endBoth()
        found.push(part)
    }
  }
  endBoth()
  return found
}

// A model may wrap its JSON in a code fence despite its instructions.
const unfenced = (text: string): string => {
  const inner = text.trim()
  const line = inner.indexOf("\n")
  if (!inner.startsWith("```") || !inner.endsWith("```") || line === -1 || line > inner.length - 3) return text
  const word = inner.slice(3, line).trim()
  return word === "" || word === "json" ? inner.slice(line + 1, -3).trim() : text
}
