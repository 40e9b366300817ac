/** Follows a run for an AG-UI page together with the agents that it calls, whose work stands before their end. */

import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { isRest, type RunEvent } from "../../RunEvent.ts"
import type { HttpProblem } from "../HttpProblem.ts"
import type { CallerRuns } from "../ServedRuns.ts"
import type { AgEvent } from "./agEvent.ts"
import type { AgFold } from "./agFold.ts"
import type { AgLane } from "./agLane.ts"
import * as Positions from "./position.ts"

/** Converts an event of the run that answers the page. */
type Push = (event: RunEvent) => Effect.Effect<ReadonlyArray<AgEvent>, HttpProblem>

/** Emits the events for a run and for the agents that it calls. */
export const eventsOf = (
  runs: CallerRuns,
  fold: AgFold,
  push: Push = (event) => Effect.sync(() => fold.push(event))
): Stream.Stream<ReadonlyArray<AgEvent>, HttpProblem> =>
  Stream.callback((queue) => {
    const emit = (made: ReadonlyArray<AgEvent>) => (made.length === 0 ? Effect.void : Queue.offer(queue, made))
    return Effect.andThen(follow({ runs, fold, emit }, fold.lane, push), Queue.end(queue))
  })

interface Following {
  readonly runs: CallerRuns
  readonly fold: AgFold
  readonly emit: (made: ReadonlyArray<AgEvent>) => Effect.Effect<unknown>
}

/** A called agent that is followed. */
interface Called {
  readonly lane: AgLane
  readonly fiber: Fiber.Fiber<void, HttpProblem>
}

/** Follows a run until it is at rest. */
const follow: (following: Following, lane: AgLane, push: Push) => Effect.Effect<void, HttpProblem, Scope.Scope> =
  Effect.fnUntraced(function* (following: Following, lane: AgLane, push: Push) {
    const { emit, fold, runs } = following
    const called = new Map<string, Called>()
    const onEvent = Effect.fnUntraced(function* (event: RunEvent) {
      if (event.type === "tool_call_completed") {
        const ended = called.get(event.callId)
        called.delete(event.callId)
        if (ended !== undefined) {
          yield* joined(ended, longestWait)
          yield* emit(fold.close(ended.lane))
        }
      } else if (isRest(event)) {
        const wait = event.type === "paused" ? longestWait : shortWait
        for (const one of called.values()) yield* joined(one, wait)
      }
      yield* emit(yield* push(event))
      for (const { callId, runId } of lane.started()) {
        if (!fold.isCurrent) continue
        const child = fold.laneOf(runId)
        child.isEnding = false
        const fiber = yield* Effect.forkScoped(followCalled(following, child))
        called.set(callId, { lane: child, fiber })
      }
    })
    const position = { ...Positions.start, after: lane.revision }
    yield* Stream.runForEach(runs.follow(lane.of, { position }), onEvent)
  })

/** Follows a called agent, whose run is stored a moment after its call has started, unless the call was refused. */
const followCalled = (following: Following, lane: AgLane): Effect.Effect<void, HttpProblem, Scope.Scope> =>
  Effect.suspend(() => {
    let isLast = false
    const attempt = Effect.suspend(() => {
      isLast = lane.isEnding
      return follow(following, lane, (event) => Effect.sync(() => following.fold.pushCalled(lane, event)))
    })
    const schedule = Schedule.spaced("20 millis")
    return Effect.retry(attempt, { while: ({ _tag }) => _tag === "NotFound" && !isLast, schedule })
  })

/** Waits until everything that a called agent did was emitted. */
const joined = ({ fiber, lane }: Called, wait: number): Effect.Effect<void> =>
  Effect.suspend(() => {
    lane.isEnding = true
    return Effect.andThen(Effect.timeoutOption(Fiber.await(fiber), wait), Fiber.interrupt(fiber))
  })

/** Milliseconds after which the end of a called agent is not waited for: its process may have died. */
const longestWait = 5_000

/** Milliseconds for the agents of a run that failed or was cancelled, which may not be at rest themselves. */
const shortWait = 500
