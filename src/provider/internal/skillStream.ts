/**
 * Runs a skill outside of a run as a stream of its results.
 */

import * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import * as Contents from "../../Content.ts"
import type { JsonObject } from "../../kit/json.ts"
import * as Skill from "../../Skill.ts"
import { scopeOf } from "./skillScope.ts"

/** Emits what a skill reports as preliminary, then its result. Leaving the stream interrupts the skill. */
export const skillStream = <R>(
  skill: Skill.AnySkill<R>,
  input: JsonObject,
  callId: string,
  services: Context.Context<R>
): AsyncIterable<unknown> =>
  Stream.toAsyncIterableWith(
    Stream.callback<unknown, Error, R>((queue) => {
      const report = (report: Skill.Report) =>
        report._tag === "Preliminary" ? Effect.asVoid(Queue.offer(queue, textOf(report.output))) : Effect.void
      return Effect.suspend(() => skill.call(input, { ...scopeOf(callId), report })).pipe(
        Effect.matchCauseEffect({
          onFailure: (cause) =>
            Cause.hasInterruptsOnly(cause)
              ? Effect.interrupt
              : Effect.flatMap(Skill.callError(skill, cause), ({ message }) => Queue.fail(queue, new Error(message))),
          onSuccess: (value) => Effect.andThen(Queue.offer(queue, textOf(value)), Queue.end(queue))
        })
      )
    }),
    services
  )

/** Returns a result as JSON if it is one, else as the text a model reads. */
const textOf = (value: unknown): unknown => {
  const output = Skill.toOutput(value)
  if (Result.isFailure(output)) return null
  const { content, value: json } = output.success
  return content.some(Contents.isMedia) ? content.map(Contents.toText).join("") : json
}
