/** Where a process of a scenario dies, or waits. */
import type { RunState } from "kernai"
import { Deferred, Effect } from "effect"
import * as Machines from "../../../src/testing/internal/replay/virtualProcess.ts"
import { type Step, type World, type Seen, scripted } from "./script.ts"

export interface Point {
  readonly step: Step
  readonly machine: Machines.Machine
  isReached: boolean
  readonly go: Deferred.Deferred<void>
}

/** Dies here, or stops here until told to go on, when the step says so. */
export const at = (point: Point, name: string): Effect.Effect<void> => {
  const { crash, interrupt } = point.step
  const crashes =
    crash !== undefined &&
    ((crash.duringModel === true && name === "model") ||
      (crash.duringTool !== undefined && name === `tool:${crash.duringTool}`) ||
      (crash.inHook !== undefined && name === `hook:${crash.inHook}`))
  if (crashes) return die(point)
  if (interrupt !== name) return Effect.void
  point.isReached = true
  return Deferred.await(point.go)
}

const die = (point: Point): Effect.Effect<never> =>
  Effect.suspend(() => {
    point.machine.kill()
    return Effect.never
  })

/** A result is in hand from the moment its commit begins. */
export const returned = (world: World, point: Point, { events }: RunState.RunRecord): Effect.Effect<void> => {
  const [event] = events
  return event?.type === "tool_call_completed"
    ? at(point, `tool_returned:${scripted(world, event.callId)}`)
    : Effect.void
}

export const stored = (world: World, seen: Seen, point: Point, record: RunState.RunRecord): Effect.Effect<void> =>
  Effect.suspend(() => {
    seen.events.push(...record.events.map((event) => labelOf(world, event)))
    return point.step.crash?.afterRevision === record.revision ? die(point) : Effect.void
  })

export const labelOf = (world: World, event: RunState.RunRecord["events"][number]): string =>
  "callId" in event ? `${event.type}:${scripted(world, event.callId)}` : event.type
