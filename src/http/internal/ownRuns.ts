/** The operations of the kernel for one caller, on the caller's own runs. */

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Pull from "effect/Pull"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { signatureOf } from "../../Caller.ts"
import { Received, follow } from "../../store-kit/Follow.ts"
import * as Kernel from "../../Kernel.ts"
import type { KernelError, RunNotFound, StoreError } from "../../KernelError.ts"
import { MediaStore } from "../../MediaStore.ts"
import type { RunEvent } from "../../RunEvent.ts"
import { type RunHead, RunStore } from "../../RunStore.ts"
import type { Caller } from "../Access.ts"
import { asProblem, Conflict, Forbidden, type HttpProblem, NotFound, Unavailable } from "../HttpProblem.ts"
import type * as Bodies from "../RunBodies.ts"
import type { CallerRuns, FollowAt } from "../ServedRuns.ts"
import type { ServerResources } from "./serverResources.ts"
import { bodyOf, listOf } from "./ownList.ts"
import { getMedia } from "./ownMedia.ts"
import * as Positions from "./position.ts"
import { resultOf } from "./ownResult.ts"
import { isOwn, keyOf, runIdOf, stored } from "./runNames.ts"
import { shownTo } from "./shownEvents.ts"
import { start } from "./startRun.ts"

/** The runs of a caller. */
export const make = (resources: ServerResources, caller: Caller): CallerRuns => {
  const { store } = resources
  const onStore = Effect.provideService(RunStore, store)
  const shown = shownTo(caller)
  const idOf = (name: string) => runIdOf(caller, name)
  const head = (name: string) => headOf(resources, caller, name)
  const follow = (runId: string, options: FollowAt) => following(resources, runId, options, shown)
  /** Runs an operation on a run of the caller. */
  const on = <A>(name: string, verb: (head: RunHead) => Effect.Effect<A, HttpProblem>) =>
    Effect.flatMap(head(name), verb)
  const state: CallerRuns["state"] = (name) =>
    on(name, ({ runId }) => Effect.flatMap(asProblem(runId)(store.load(runId)), orMissing(runId)))

  return {
    caller,
    takesContext: resources.context !== undefined,
    idOf,
    head,
    summary: (name) => Effect.map(head(name), (head) => bodyOf(caller, head)),
    state,
    start: (request) => start(resources, caller, request),
    list: (query) => listOf(resources, caller, query),
    follow: (name, options = {}) =>
      resources.maySee === undefined
        ? // The id is the caller's own. The stream fails if the run does not exist.
          follow(idOf(name), options)
        : Stream.unwrap(Effect.map(head(name), ({ runId }) => follow(runId, options))),
    place: resources.places(keyOf(caller)),
    questions: (name) => on(name, ({ runId }) => asProblem(runId)(onStore(Kernel.questions(runId)))),
    answer: (name, body) => on(name, (head) => answer(resources, caller, head, body)),
    cancel: (name, reason) =>
      Effect.flatMap(ownHead(resources, caller, name), ({ runId }) =>
        Effect.map(
          asProblem(runId)(
            onStore(Kernel.cancel(runId, { by: signatureOf(caller), ...(reason === undefined ? {} : { reason }) }))
          ),
          (ended) => endedFor(caller, ended)
        )
      ),
    operate: (operation, id = "of all callers") => operate(resources, caller, operation, id),
    retry: (name, revision) => on(name, (head) => retry(resources, caller, head, revision)),
    result: (name) => Effect.flatMap(state(name), (state) => resultOf(state, resources.agents)),
    putMedia: (name, bytes, media) => resources.uploads.receive(keyOf(caller), idOf(name), bytes, media),
    mediaOf: (name) => Effect.flatMap(head(name), ({ rootRunId }) => resources.uploads.open(rootRunId)),
    getMedia: (name, id) => on(name, ({ rootRunId }) => getMedia(resources, rootRunId, id))
  }
}

/** Returns what a cancellation ended, without the workers of the server unless the caller is an operator. */
const endedFor = (
  { isOperator = false }: Caller,
  { calls, workers, ...ended }: Kernel.Cancelled
): Bodies.Cancelled => ({
  ...ended,
  calls: calls.map(({ callId, effects, name, runId }) => ({
    runId,
    callId,
    name,
    ...(effects === undefined ? {} : { effects })
  })),
  ...(isOperator ? { workers } : {})
})

/** Runs an operation on the whole store, for an operator. */
const operate = <A, E extends KernelError>(
  { media, store }: ServerResources,
  { isOperator = false }: Caller,
  operation: Effect.Effect<A, E, RunStore | MediaStore>,
  id: string
): Effect.Effect<A, HttpProblem> =>
  isOperator
    ? asProblem(id)(operation.pipe(Effect.provideService(RunStore, store), Effect.provideService(MediaStore, media)))
    : Effect.fail(new Forbidden({ detail: "only an operator operates the runs of all callers" }))

/** Returns the head of a run, if it is the caller's own. */
const ownHead = ({ store }: ServerResources, caller: Caller, name: string): Effect.Effect<RunHead, HttpProblem> => {
  const runId = runIdOf(caller, name)
  return Effect.flatMap(asProblem(runId)(store.head(runId)), orMissing(runId)).pipe(
    Effect.filterOrFail(
      (head) => isOwn(caller, head.rootRunId),
      () => new NotFound({ what: "run", id: runId })
    )
  )
}

/** Returns the head of a run that the caller may see: its own, or by its whole id that of another caller. */
const headOf = (resources: ServerResources, caller: Caller, name: string): Effect.Effect<RunHead, HttpProblem> => {
  const { maySee, store } = resources
  const own = ownHead(resources, caller, name)
  if (maySee === undefined || isOwn(caller, name)) return own
  return Effect.catchTag(own, "NotFound", (missing) =>
    Effect.gen(function* () {
      const head = yield* Effect.flatMap(asProblem(name)(store.head(name)), orMissing(name))
      const root = yield* Effect.flatMap(asProblem(name)(store.head(head.rootRunId)), orMissing(name))
      return (yield* maySee(caller, root)) ? head : yield* missing
    })
  )
}

const orMissing =
  (id: string) =>
  <A>(found: Option.Option<A>): Effect.Effect<A, HttpProblem> =>
    Option.match(found, { onNone: () => Effect.fail(new NotFound({ what: "run", id })), onSome: Effect.succeed })

const withProblems = <A>(
  pull: Pull.Pull<A, RunNotFound | StoreError | Unavailable>,
  runId: string
): Pull.Pull<A, HttpProblem> =>
  Effect.catch(pull, (error): Pull.Pull<never, HttpProblem> =>
    error instanceof Unavailable || Cause.isDone(error) ? Effect.fail(error) : asProblem(runId)(Effect.fail(error))
  )

const following = (
  { closed, store, uploads }: ServerResources,
  runId: string,
  { position = Positions.start, until }: FollowAt,
  shown: ((event: RunEvent) => RunEvent | undefined) | undefined
): Stream.Stream<RunEvent, HttpProblem> => {
  const received = new Received(position.received)
  const journal = follow(store, runId, { after: position.after, until }, received, closed)
  // One step for both, since each step of a stream is memory that every follower holds.
  const events = Stream.transformPull(journal, (pull, scope) =>
    Effect.as(Scope.provide(uploads.follow(runId), scope), withProblems(pull, runId))
  )
  return shown === undefined
    ? events
    : Stream.filterMap(events, (event) => Result.fromNullishOr(shown(event), () => undefined))
}

const answer = Effect.fnUntraced(function* (
  resources: ServerResources,
  caller: Caller,
  head: RunHead,
  { answers, revision }: Bodies.Answers
): Effect.fn.Return<void, HttpProblem> {
  const { store } = resources
  const { runId } = head
  yield* checkAnswers(resources, caller, head, new Set(answers.map(({ callId }) => callId)))
  const recorded = Kernel.answer(runId, answers, { revision, caller: stored(caller) })
  yield* asProblem(runId)(Effect.provideService(recorded, RunStore, store))
  yield* resources.take(runId)
})

/** Offers a run at rest to workers again, for an operator. */
const retry = Effect.fnUntraced(function* (
  resources: ServerResources,
  { isOperator = false }: Caller,
  { runId }: RunHead,
  revision: number | undefined
): Effect.fn.Return<void, HttpProblem> {
  if (!isOperator) return yield* new Forbidden({ detail: "only an operator retries a run" })
  const offered = Effect.provideService(Kernel.retry(runId, { revision }), RunStore, resources.store)
  if (!(yield* asProblem(runId)(offered))) return yield* new Conflict({ reason: "not_at_rest", id: runId })
  yield* resources.take(runId)
})

/** Fails if the host does not let the caller answer one of these calls. Policies are asked when answers are recorded. */
const checkAnswers = Effect.fnUntraced(function* (
  { mayAnswer, store }: ServerResources,
  caller: Caller,
  head: RunHead,
  callIds: ReadonlySet<string>
): Effect.fn.Return<void, HttpProblem> {
  const { rootRunId, runId } = head
  if (mayAnswer === undefined && isOwn(caller, rootRunId)) return
  const open = yield* asProblem(runId)(Effect.provideService(Kernel.questions(runId), RunStore, store))
  for (const question of open) {
    if (!callIds.has(question.callId)) continue
    const isAllowed =
      mayAnswer === undefined ? question.answerers !== undefined : yield* mayAnswer(caller, question, head)
    if (!isAllowed) return yield* new Forbidden({ detail: `'${caller.id}' may not answer this question` })
  }
})
