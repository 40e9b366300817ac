/** Runs an agent whose questions go to the caller of a skill. */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { Agent } from "../../Agent.ts"
import { isJsonObject, type Json } from "../../kit/json.ts"
import { shorten } from "../../kit/text.ts"
import * as Kernel from "../../Kernel.ts"
import type { ResumeError, RunError, RunPaused } from "../../KernelError.ts"
import type { Answer, Caller, RunResult } from "../../RunState.ts"
import { type AnswerPending, type AnySkill, Asking, type CallScope, type Reply } from "../../Skill.ts"

/** The caller who starts the runs and answers their questions. */
const caller: Caller = { id: "the person of the client" }

/**
 * Runs an agent and returns the text of its answer. If the call is executed again, because its own run asked a person
 * in between, it continues the run of the agent instead of starting another one.
 */
export const run = Effect.fnUntraced(function* <Output, S extends AnySkill<unknown>, R = never>(
  agent: Agent<Output, S, R>,
  input: string,
  { ask, idempotencyKey }: Pick<CallScope, "ask" | "idempotencyKey">
): Effect.fn.Return<string, RunError | ResumeError | AnswerPending, Kernel.Kernel | Kernel.Needs<R>> {
  const runId = `served_${idempotencyKey.replace(/[^\w.-]/g, "_")}`
  const started: Attempt<R> = Effect.catchTag(Kernel.run(agent, input, { runId, caller }), "RunExists", () =>
    Kernel.resume(agent, runId)
  )
  let answers: ReadonlyArray<Answer> | undefined
  for (;;) {
    const next: Attempt<R> = answers === undefined ? started : Kernel.resume(agent, runId, { answers, caller })
    const ended = yield* textOrPause(next)
    if (typeof ended === "string") return ended
    const questions = questionsIn(ended.metadata)
    if (ask === undefined || questions.length === 0) return yield* ended
    answers = yield* Effect.forEach(questions, (question) =>
      Effect.map(ask(askingOf(question)), (reply) => answerOf(question.callId, reply))
    )
  }
})

type Attempt<R> = Effect.Effect<Pick<RunResult, "text">, RunError | ResumeError, Kernel.Kernel | Kernel.Needs<R>>

const textOrPause = <R>(
  attempt: Attempt<R>
): Effect.Effect<string | RunPaused, Exclude<RunError | ResumeError, RunPaused>, Kernel.Kernel | Kernel.Needs<R>> =>
  Effect.matchEffect(attempt, {
    onFailure: (error) => (error._tag === "RunPaused" ? Effect.succeed(error) : Effect.fail(error)),
    onSuccess: ({ text }) => Effect.succeed(text)
  })

const Question = Schema.Struct({
  callId: Schema.String,
  name: Schema.String,
  input: Schema.Json,
  reason: Schema.String,
  asking: Schema.optionalKey(Asking)
})

const decode = Schema.decodeUnknownOption(Schema.Array(Question))

/** Returns the questions in the metadata of a pause, or none if a hook paused the run. */
const questionsIn = (metadata: Json): ReadonlyArray<typeof Question.Type> =>
  Option.getOrElse(decode(isJsonObject(metadata) ? metadata["questions"] : undefined), () => [])

/** Returns the question of a call, or the question to confirm it. */
const askingOf = ({ asking, input, name, reason }: typeof Question.Type): Asking =>
  asking ?? { message: `${reason}: ${name} ${shorten(JSON.stringify(input), longest)}` }

// Maximum UTF-16 units of an input that a person is shown.
const longest = 2_000

const answerOf = (callId: string, reply: Reply): Answer => {
  switch (reply._tag) {
    case "Accepted":
      return { callId, approved: true, values: reply.values }
    case "Declined":
      return { callId, approved: false, ...(reply.reason === undefined ? {} : { reason: reply.reason }) }
    case "Dismissed":
      return { callId, approved: false, dismissed: true }
  }
}
