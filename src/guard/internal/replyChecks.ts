/** Checks a reply while it streams. An objection stops it. */

import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Stream from "effect/Stream"
import type { ModelStream } from "../../Middleware.ts"
import { MiddlewareTermination } from "../../KernelError.ts"
import type { StreamPart } from "../../StreamPart.ts"
import type { Detector, Finding } from "../Detector.ts"
import { type Held, rewrite } from "./deltas.ts"

/** Says where findings stand, never what they are. */
export const described = (findings: ReadonlyArray<Finding>): string =>
  findings.map(({ end, kind, start }) => `${kind} at ${start}-${end}`).join(", ")

/** Stops a reply before anything that the detector finds is passed on. */
export const withoutFindings = (reply: ModelStream, detector: Detector): ModelStream => {
  const release = ({ before, isEnd, offset, text }: Held) =>
    Effect.suspend(() => {
      const found = detector
        .find(before + text)
        .map((finding) => ({ ...finding, start: finding.start - before.length, end: finding.end - before.length }))
        .filter(({ end }) => end > 0)
      // A word that ends with the text may continue with the next piece.
      const isOpen = ({ end, start }: Finding) => !isEnd && end === text.length && text.length - start < longest
      const certain = found.filter((finding) => !isOpen(finding))
      if (certain.length > 0) {
        const places = certain.map(({ end, kind, start }) => ({ kind, start: start + offset, end: end + offset }))
        return Effect.fail(new MiddlewareTermination({ reason: `the reply holds ${described(places)}` }))
      }
      const first = Math.min(text.length - detector.reach, ...found.map(({ start }) => start))
      const length = isEnd ? text.length : Math.max(0, first)
      return Effect.succeed([length, text.slice(0, length)] as const)
    })
  return rewrite(reply, release, (part) => [part])
}

/** An open finding of this length is one. */
const longest = 16_384

/**
 * Asks a judge about a reply whenever `every` more characters have arrived, beside the stream. The end of the reply
 * waits for all answers.
 */
export const judged = (
  reply: ModelStream,
  objects: (text: string) => Effect.Effect<boolean>,
  every: number
): ModelStream =>
  Stream.unwrap(
    Effect.gen(function* () {
      const objection = yield* Deferred.make<never, MiddlewareTermination>()
      const asked = yield* FiberSet.make()
      let text = ""
      let judgedTo = 0
      const judge = Effect.suspend(() => {
        judgedTo = text.length
        return Effect.flatMap(objects(text), (isObjection) =>
          isObjection
            ? Deferred.fail(objection, new MiddlewareTermination({ reason: "a judge objects to the reply" }))
            : Effect.void
        )
      })
      const take = (part: StreamPart): Effect.Effect<StreamPart, MiddlewareTermination> => {
        if (part.type === "text-delta") {
          text += part.delta
          if (text.length - judgedTo < every) return Effect.succeed(part)
          judgedTo = text.length
          return Effect.as(FiberSet.run(asked, judge), part)
        }
        return part.type === "finish" ? Effect.as(settled, part) : Effect.succeed(part)
      }
      const settled = Effect.gen(function* () {
        if (text.length > judgedTo) yield* judge
        yield* FiberSet.awaitEmpty(asked)
        if (yield* Deferred.isDone(objection)) return yield* Deferred.await(objection)
      })
      return reply.pipe(Stream.mapEffect(take), Stream.interruptWhen(Deferred.await(objection)))
    })
  )
