/**
 * Rewrites the text of a streamed reply. The end of what has arrived may be held back until it is clear what it is.
 */

import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { ModelStream } from "../../Middleware.ts"
import type { MiddlewareTermination } from "../../KernelError.ts"
import type { StreamPart, TextDelta, ToolParamsDelta } from "../../StreamPart.ts"

/** The text of one part that has not been passed on, after the last characters that have. */
export interface Held {
  readonly before: string
  readonly text: string
  /** The number of characters before `text`. */
  readonly offset: number
  readonly isEnd: boolean
  readonly type: Delta["type"]
}

type Delta = TextDelta | ToolParamsDelta

/** Returns the length of the text that may be passed on, and what stands for it. */
export type Release = (held: Held) => Effect.Effect<readonly [length: number, text: string], MiddlewareTermination>

interface State {
  readonly delta: Delta | undefined
  readonly before: string
  readonly text: string
  readonly offset: number
}

const none: State = { delta: undefined, before: "", text: "", offset: 0 }

/** Characters that are kept as context of a held text. */
const context = 32

/** Passes on the text and the written input of calls as `release` says, and all other parts as `other` says. */
export const rewrite = (
  reply: ModelStream,
  release: Release,
  other: (part: Exclude<StreamPart, Delta>) => ReadonlyArray<StreamPart>
): ModelStream => {
  const pass = (state: State, isEnd: boolean) => {
    const { before, delta, offset, text } = state
    if (delta === undefined || text === "") return Effect.succeed([state, noParts] as const)
    return Effect.map(release({ before, text, offset, isEnd, type: delta.type }), ([length, written]) => {
      const next = {
        delta,
        before: (before + text.slice(0, length)).slice(-context),
        text: text.slice(length),
        offset: offset + length
      }
      return [next, written === "" ? noParts : [{ ...delta, delta: written }]] as const
    })
  }
  const take = Effect.fnUntraced(function* (state: State, part: StreamPart) {
    if (!isDelta(part)) {
      const [, parts] = yield* pass(state, true)
      return [none, [...parts, ...other(part)]] as const
    }
    const isSame = state.delta?.type === part.type && state.delta.id === part.id
    const [, parts] = isSame ? [state, noParts] : yield* pass(state, true)
    const from = isSame ? state : none
    const [next, more] = yield* pass({ ...from, delta: part, text: from.text + part.delta }, false)
    return [next, [...parts, ...more]] as const
  })
  return Stream.mapAccumEffect(reply, () => none, take)
}

const noParts: ReadonlyArray<StreamPart> = []

const isDelta = (part: StreamPart): part is Delta => part.type === "text-delta" || part.type === "tool-params-delta"
