/**
 * Limits the time of a run and its calls: the deadline of a run, shared by its processes and its whole tree, and the
 * timeout of foreign code.
 */

import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { DeadlineExceeded, type StoreError } from "../../KernelError.ts"
import type * as RunStore from "../../RunStore.ts"
import { forkNow } from "../../kit/foreignCode.ts"
import { TimedOut } from "../skill/failureText.ts"
import type { FlushError } from "../../store-kit/internal/storeGuard.ts"
import { flush } from "./commit.ts"
import { type LiveEvent, emit } from "./publish.ts"
import { type Run, now } from "./run.ts"

/** Fails a run's loop when the run exceeds its deadline. */
export const withinDeadline = <E>(
  run: Run,
  loop: Effect.Effect<void, E>
): Effect.Effect<void, E | DeadlineExceeded | StoreError> => {
  const given = run.deadline
  if (given === undefined) return loop
  const deadline = Duration.toMillis(given)
  const late = Effect.suspend(() =>
    Effect.fail(new DeadlineExceeded({ runId: run.state.runId, deadline: Duration.millis(deadline) }))
  )
  return Effect.flatMap(workedFor(run.store, run.state, now(run)), (spent) =>
    spent < deadline
      ? run.restore(
          Effect.timeoutOrElse(Effect.uninterruptible(loop), { duration: deadline - spent, orElse: () => late })
        )
      : late
  )
}

/** Returns whether a run was past its deadline at its last record. Resuming it without more time would fail again. */
export const isOverdue = (
  store: RunStore.RunStoreShape,
  head: RunStore.RunHead,
  deadlineMs: number
): Effect.Effect<boolean, StoreError> =>
  head.updatedAt - head.createdAt < deadlineMs
    ? Effect.succeed(false)
    : Effect.map(workedFor(store, head, head.updatedAt), (spent) => spent >= deadlineMs)

/** The timeout of foreign code, and the event for code that does not stop after it. */
export interface Limit {
  readonly timeout: Duration.Duration
  readonly leaked: LiveEvent
}

/**
 * Runs foreign code with a timeout, in its own fiber so that code that ignores interruption cannot block the run. Code
 * that has not stopped within the clean-up limit is reported and abandoned. While the code waits, pending records of the
 * run are stored; if that fails, so does the code.
 */
export const withinTimeout = <A, E>(
  run: Run,
  limit: Limit | undefined,
  code: Effect.Effect<A, E>
): Effect.Effect<Exit.Exit<A, E | TimedOut | FlushError>> => {
  if (limit === undefined) return Effect.exit(code)
  return Effect.uninterruptibleMask((restore) =>
    forkNow(code, (fiber): Effect.Effect<Exit.Exit<A, E | TimedOut | FlushError>> => {
      const exit = fiber.pollUnsafe()
      return exit === undefined ? waitFor(run, limit, fiber, restore) : Effect.succeed(exit)
    })
  )
}

const waitFor = Effect.fnUntraced(function* <A, E>(
  run: Run,
  { leaked, timeout }: Limit,
  fiber: Fiber.Fiber<A, E>,
  restore: Run["restore"]
): Effect.fn.Return<Exit.Exit<A, E | TimedOut | FlushError>> {
  const startedAt = now(run)
  const stored = yield* Effect.exit(flush(run))
  const stop = interruptCode(run, fiber, leaked)
  if (Exit.isFailure(stored)) {
    yield* stop
    return Exit.failCause(stored.cause)
  }
  const left = Math.max(0, Duration.toMillis(timeout) - (now(run) - startedAt))
  const ended = yield* Effect.onError(restore(Effect.timeoutOption(Fiber.await(fiber), left)), () => stop)
  if (Option.isSome(ended)) return ended.value
  yield* stop
  return Exit.fail(new TimedOut(timeout))
})

/**
 * Returns how many milliseconds a run has worked: since its first record after submission or fork, without its pauses.
 */
const workedFor = Effect.fnUntraced(function* (
  store: RunStore.RunStoreShape,
  { revision, runId }: Pick<RunStore.RunHead, "revision" | "runId">,
  until: number
): Effect.fn.Return<number, StoreError> {
  let begun = 1
  let since: number | undefined
  let spent = 0
  if (revision > begun) {
    yield* Stream.runForEach(store.read(runId), ({ createdAt, events, revision }) =>
      Effect.sync(() => {
        for (const event of events) if (event.type === "run_started") begun = event.forkedFrom?.revision ?? begun
        if (revision <= begun) return
        since ??= createdAt
        if (!events.some((event) => event.type === "paused" || event.type === "run_cancelled")) return
        spent += createdAt - since
        since = undefined
      })
    )
  }
  return since === undefined ? spent : spent + until - since
})

const interruptCode = (run: Run, fiber: Fiber.Fiber<unknown, unknown>, leaked: LiveEvent): Effect.Effect<void> =>
  Effect.flatMap(Effect.timeoutOption(Fiber.interrupt(fiber), run.limits.cleanUpTimeout), (ended) =>
    Option.isSome(ended) ? Effect.void : Effect.sync(() => emit(run, leaked))
  )
