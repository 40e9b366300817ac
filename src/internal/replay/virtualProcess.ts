/**
 * Processes inside this one, in virtual time.
 *
 * A machine is the scheduler and the clock of its fibers. It can be stopped,
 * woken and killed between any two of their operations: what is killed never
 * runs again, not even its finalisers. A world moves its machines task by task,
 * and time only when none of them can move; what a machine asks of the outside
 * (a store, say) runs outside, so that a kill never cuts it in half.
 */

import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Scheduler from "effect/Scheduler"

/** Whether a machine runs, is stopped (and may run again), or is gone. */
export type Status = "running" | "stopped" | "dead"

/** Decides which of so many tasks is next, and whether a fiber gives way where it stands. */
export interface Order {
  readonly pick: (count: number) => number
  readonly gives: () => boolean
}

/** First come, first served; a fiber runs until it waits. */
export const inOrder: Order = { pick: () => 0, gives: () => false }

interface Sleeper {
  readonly at: number
  readonly wake: () => void
}

/** How many operations a fiber may run before others get their turn: as many as with effect's own scheduler. */
const operations = 2048

/** One process: its fibers run only when its world lets them. */
export class Machine implements Scheduler.Scheduler {
  readonly executionMode = "async"
  readonly name: string
  readonly clock: Clock.Clock
  status: Status = "running"
  /** How far the clock of this machine is off, in milliseconds. */
  skew = 0
  readonly tasks: Array<() => void> = []
  /** Every fiber that ever ran here, where somebody wants to know. */
  fibers: Set<Fiber.Fiber<unknown, unknown>> | undefined = undefined
  readonly sleepers = new Set<Sleeper>()
  readonly world: World

  constructor(name: string, world: World) {
    this.name = name
    this.world = world
    this.clock = clockOf(this)
  }

  shouldYield(fiber: Fiber.Fiber<unknown, unknown>): boolean {
    this.fibers?.add(fiber)
    return this.status !== "running" || fiber.currentOpCount >= operations || this.world.order.gives()
  }

  makeDispatcher(): Scheduler.SchedulerDispatcher {
    // Nothing runs but by leave of the world, so a flush does nothing.
    return { scheduleTask: (task) => this.add(task), flush: () => {} }
  }

  add(task: () => void): void {
    if (this.status !== "dead") this.tasks.push(task)
  }

  /** Starts a program, in a context if there is one; it takes its first step when the world moves. */
  start<A, E>(program: Effect.Effect<A, E>, context: Context.Context<never> = Context.empty()): Fiber.Fiber<A, E> {
    const own = context.pipe(Context.add(Clock.Clock, this.clock), Context.add(Scheduler.Scheduler, this))
    return Effect.runForkWith(own)(Effect.andThen(Effect.yieldNow, program))
  }

  /** Asks the outside. The effect runs there to its end, whatever becomes of this machine. */
  ask<A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> {
    return Effect.callback<A, E>((resume) => {
      this.world.outside++
      Effect.runFork(effect).addObserver((exit) => {
        this.add(() => resume(exit))
        this.world.hear()
      })
    })
  }

  /** Waits until nothing else can move, for no time. Of those who wait so, the one with the lowest place goes on first. */
  giveWay(place: number): Effect.Effect<void> {
    return sleepUntil(this, Number.MIN_SAFE_INTEGER + place)
  }

  stop(): void {
    if (this.status === "running") this.status = "stopped"
  }

  wake(): void {
    if (this.status === "stopped") this.status = "running"
  }

  kill(): void {
    this.status = "dead"
    this.tasks.length = 0
    this.sleepers.clear()
  }
}

const clockOf = (machine: Machine): Clock.Clock => {
  const millis = () => machine.world.now + machine.skew
  const nanos = () => BigInt(Math.round(millis())) * 1_000_000n
  const monotonic = () => BigInt(Math.round(machine.world.now)) * 1_000_000n
  return {
    currentTimeMillisUnsafe: millis,
    currentTimeMillis: Effect.sync(millis),
    currentTimeNanosUnsafe: nanos,
    currentTimeNanos: Effect.sync(nanos),
    monotonicTimeNanosUnsafe: monotonic,
    monotonicTimeNanos: Effect.sync(monotonic),
    sleep: (duration) => Effect.suspend(() => sleepUntil(machine, machine.world.now + Duration.toMillis(duration)))
  }
}

const sleepUntil = (machine: Machine, at: number): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    const sleeper = { at, wake: () => machine.add(() => resume(Effect.void)) }
    if (machine.status !== "dead") machine.sleepers.add(sleeper)
    return Effect.sync(() => machine.sleepers.delete(sleeper))
  })

/** Machines that share one time. */
export class World {
  now: number
  order: Order
  /** What machines asked of the outside and was not answered yet. */
  outside = 0
  /** Tasks that were run. */
  moves = 0
  readonly machines: Array<Machine> = []
  #listening: (() => void) | undefined

  constructor(options: { readonly now?: number; readonly order?: Order } = {}) {
    this.now = options.now ?? 1_000
    this.order = options.order ?? inOrder
  }

  boot(name: string): Machine {
    const machine = new Machine(name, this)
    this.machines.push(machine)
    return machine
  }

  /** An answer came from the outside. */
  hear(): void {
    this.outside--
    this.#listening?.()
  }

  /** Runs one task, if there is one that may run. */
  step(): boolean {
    let count = 0
    for (const machine of this.machines) if (machine.status === "running") count += machine.tasks.length
    if (count === 0) return false
    let index = count === 1 ? 0 : this.order.pick(count)
    for (const machine of this.machines) {
      if (machine.status !== "running") continue
      if (index < machine.tasks.length) {
        const [task] = index === 0 ? [machine.tasks.shift()] : machine.tasks.splice(index, 1)
        this.moves++
        task?.()
        return true
      }
      index -= machine.tasks.length
    }
    return false
  }

  /** Moves time to whoever wakes next, if anybody sleeps. */
  advance(): boolean {
    let next: Sleeper | undefined
    let owner: Machine | undefined
    for (const machine of this.machines) {
      if (machine.status !== "running") continue
      for (const sleeper of machine.sleepers) {
        if (next === undefined || sleeper.at < next.at) {
          next = sleeper
          owner = machine
        }
      }
    }
    if (next === undefined || owner === undefined) return false
    owner.sleepers.delete(next)
    this.now = Math.max(this.now, next.at)
    next.wake()
    return true
  }

  /** Waits for the next answer from the outside. */
  readonly listen: Effect.Effect<void> = Effect.callback<void>((resume) => {
    if (this.outside === 0) return resume(Effect.void)
    this.#listening = () => {
      this.#listening = undefined
      resume(Effect.void)
    }
  })
}

/** How a stretch of a world's life ended: as wanted, with everybody waiting for nothing, or never. */
export type Ending = "done" | "idle" | "endless"

/** Moves a world until `done`, until nothing can move, or for so many steps. */
export const drive = Effect.fnUntraced(function* (
  world: World,
  done: () => boolean,
  steps = 200_000
): Effect.fn.Return<Ending> {
  let turned = 0
  for (let step = 0; step < steps; step++) {
    if (done()) return "done"
    if (world.step()) turned = 0
    else if (world.outside > 0) yield* world.listen
    // A promise of somebody else's may be about to settle: it gets two turns before time moves.
    else if (turned++ < 2) yield* Effect.yieldNow
    else if (world.advance()) turned = 0
    else return "idle"
  }
  return "endless"
})
