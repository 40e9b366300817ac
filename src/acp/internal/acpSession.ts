/** One session: its prompts are answered one after the other, each by a run. */

import type * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { Agent } from "../../Agent.ts"
import * as ChatHistory from "../../ChatHistory.ts"
import type { JsonObject } from "../../kit/json.ts"
import * as Kernel from "../../Kernel.ts"
import { type ResumeStreamError, type StoreError, type StreamError, withVendorWords } from "../../KernelError.ts"
import type { RunEvent } from "../../RunEvent.ts"
import type { Caller, GivenAnswer } from "../../RunState.ts"
import { RunStore } from "../../RunStore.ts"
import type { AnySkill } from "../../Skill.ts"
import { shorten } from "../../kit/text.ts"
import { ask, type Asker } from "./acpPermission.ts"
import { AcpProblem, failed, invalidRequest } from "./acpProblem.ts"
import { inputOf } from "./acpPrompt.ts"
import { type Update, UpdateFold } from "./acpUpdates.ts"
import type { Prompt } from "./acpWire.ts"
import * as Stored from "./storedSessions.ts"

/** Everything that the prompts of a session share. */
export interface Session<S extends AnySkill<unknown>, R> extends Asker {
  readonly agent: Agent<unknown, S, R, unknown>
  readonly services: Context.Context<Kernel.Kernel | RunStore | Kernel.Needs<R>>
  /** Completes when the prompt in progress is cancelled. Undefined between prompts. */
  cancelling: Deferred.Deferred<void> | undefined
  /** The updates of the last prompt. */
  fold: UpdateFold | undefined
}

type StopReason = "end_turn" | "max_tokens" | "max_turn_requests" | "refusal" | "cancelled"

const caller: Caller = { id: "the editor" }

/** Answers a prompt. */
export const prompt = <S extends AnySkill<unknown>, R>(
  session: Session<S, R>,
  blocks: (typeof Prompt.Type)["prompt"]
): Effect.Effect<JsonObject, AcpProblem> =>
  Effect.suspend(() => {
    if (session.cancelling !== undefined) return Effect.fail(invalidRequest("the session answers a prompt already"))
    const cancelling = Deferred.makeUnsafe<void>()
    session.cancelling = cancelling
    return answer(session, blocks, cancelling).pipe(
      Effect.map((stopReason) => ({ stopReason })),
      Effect.mapError((error) => (error instanceof AcpProblem ? error : failed(shorten(withVendorWords(error), 800)))),
      Effect.provideContext(session.services),
      Effect.ensuring(Effect.sync(() => (session.cancelling = undefined)))
    )
  })

const answer = Effect.fnUntraced(function* <S extends AnySkill<unknown>, R>(
  session: Session<S, R>,
  blocks: (typeof Prompt.Type)["prompt"],
  cancelling: Deferred.Deferred<void>
): Effect.fn.Return<
  StopReason,
  AcpProblem | StreamError | ResumeStreamError | StoreError,
  Kernel.Kernel | RunStore | Kernel.Needs<R>
> {
  const input = yield* inputOf(blocks)
  const store = yield* RunStore
  const [last] = yield* Stored.runsOf(session.sessionId, 1)
  // A prompt that was cut off, such as by the end of the process, is not continued any more.
  if (last !== undefined) yield* stop(last.runId)
  const before = last === undefined ? undefined : Option.getOrUndefined(yield* store.load(last.runId))
  const runId = Stored.nextRunId(session.sessionId, last)
  const history = before === undefined ? [] : ChatHistory.ofState(before)
  const context = Stored.contextOf(session.cwd)
  const fold = new UpdateFold(session.cwd)
  session.fold = fold
  const events = Kernel.stream(session.agent, input, { runId, history, context, caller })
  return yield* Effect.raceFirst(
    follow(session, fold, runId, events),
    Effect.as(Deferred.await(cancelling), "cancelled" as const)
  ).pipe(
    Effect.tap((end) => (end === "cancelled" ? stop(runId) : Effect.void)),
    Effect.onInterrupt(() => stop(runId)),
    Effect.ensuring(Effect.suspend(() => send(session, fold.stop())))
  )
})

/** Cancels a run, unless it has ended. */
const stop = (runId: string): Effect.Effect<void, never, RunStore> =>
  Effect.ignore(Kernel.cancel(runId, { by: caller.id }))

/** Follows a run to its end, and asks its questions. */
const follow = Effect.fnUntraced(function* <S extends AnySkill<unknown>, R>(
  session: Session<S, R>,
  fold: UpdateFold,
  runId: string,
  first: Stream.Stream<RunEvent<unknown, S>, StreamError, Kernel.Kernel | Kernel.Needs<R>>
) {
  let events: Stream.Stream<RunEvent, StreamError | ResumeStreamError, Kernel.Kernel | Kernel.Needs<R>> = first
  while (true) {
    const end = yield* watch(session, fold, events)
    if (typeof end === "string") return end
    const answers = yield* askAll(session, runId)
    if (answers === undefined) return "cancelled"
    if (answers.length === 0) return yield* failed(`the run waits: ${shorten(end.reason, 400)}`)
    events = Kernel.resumeStream(session.agent, runId, { answers, caller })
  }
})

/** Sends the events of a run until it is at rest. */
const watch = Effect.fnUntraced(function* <R>(
  session: Pick<Asker, "peer" | "sessionId">,
  fold: UpdateFold,
  events: Stream.Stream<RunEvent, StreamError | ResumeStreamError, R>
) {
  const seen: { end: End } = { end: "end_turn" }
  yield* Stream.runForEach(events, (event) => {
    if (event.depth === 0) seen.end = endOf(event) ?? seen.end
    return send(session, fold.push(event))
  }).pipe(
    Effect.catchIf(
      ({ _tag }) => _tag === "MaxStepsReached",
      () => Effect.sync(() => void (seen.end = "max_turn_requests"))
    )
  )
  return seen.end
})

/** Why a run is at rest: why it ended, or why it is paused. */
type End = StopReason | { readonly reason: string }

const endOf = (event: RunEvent): End | undefined => {
  switch (event.type) {
    case "paused":
      return { reason: event.reason }
    case "run_cancelled":
      return "cancelled"
    case "model_completed":
      return event.finishReason === "length"
        ? "max_tokens"
        : event.finishReason === "content-filter"
          ? "refusal"
          : "end_turn"
    default:
      return undefined
  }
}

/** Asks the questions of a run. Returns undefined if the prompt was cancelled instead. */
const askAll = Effect.fnUntraced(function* (asker: Asker, runId: string) {
  const answers: Array<GivenAnswer> = []
  const questions = yield* Effect.catchTag(Kernel.questions(runId), "RunNotFound", () => Effect.succeed([]))
  for (const question of questions) {
    if (question.asking?.isTimer === true) continue
    const answer = yield* ask(asker, question)
    if (answer === undefined) return undefined
    answers.push(answer)
  }
  return answers
})

/** Sends updates to the client. */
export const send = (
  { peer, sessionId }: Pick<Asker, "peer" | "sessionId">,
  updates: ReadonlyArray<Update>
): Effect.Effect<void> =>
  Effect.forEach(updates, (update) => peer.notify("session/update", { sessionId, update }), { discard: true })
