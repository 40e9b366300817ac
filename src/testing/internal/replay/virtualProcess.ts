/**
 * Simulates processes inside this one, in virtual time.
 *
 * A machine is the scheduler and the clock of its fibers. It can be suspended, woken and killed between any two of
 * their operations; a killed machine never runs again, not even its finalizers. A world runs its machines task by task,
 * and advances time only when none of them can continue. Outside requests of a machine, such as those to a store, run
 * outside, so that a kill never interrupts them halfway.
 */

import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Scheduler from "effect/Scheduler"
import { Outside } from "../../../Simulation.ts"

/** Whether a machine runs, is suspended (and may run again), or is dead. */
type Status = "running" | "stopped" | "dead"

/** Decides which of the waiting tasks is next, and whether a fiber yields. */
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

/** Number of operations that a fiber may run before others get their turn, as with effect's own scheduler. */
const operations = 2048

/** One process, whose fibers run only when its world lets them. */
export class Machine implements Scheduler.Scheduler {
  readonly executionMode = "async"
  readonly name: string
  readonly clock: Clock.Clock
  status: Status = "running"
  /** The offset of this machine's clock, in milliseconds. */
  skew = 0
  readonly tasks: Array<() => void> = []
  /** Every fiber that ever ran here, if they are tracked. */
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
    // Only the world runs tasks, so a flush does nothing.
    return { scheduleTask: (task) => this.add(task), flush: () => {} }
  }

  add(task: () => void): void {
    if (this.status !== "dead") this.tasks.push(task)
  }

  /** Starts a program in a context. It takes its first step when the world moves. */
  start<A, E>(program: Effect.Effect<A, E>, context: Context.Context<never> = Context.empty()): Fiber.Fiber<A, E> {
    const own = context.pipe(
      Context.add(Clock.Clock, this.clock),
      Context.add(Scheduler.Scheduler, this),
      Context.add(Outside, (effect) => this.ask(effect))
    )
    return Effect.runForkWith(own)(Effect.andThen(Effect.yieldNow, program))
  }

  /** Runs an effect outside, to its end, whatever happens to this machine. */
  ask<A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> {
    return Effect.callback<A, E>((resume) => {
      this.world.outside++
      Effect.runFork(effect).addObserver((exit) => {
        this.add(() => resume(exit))
        this.world.hear()
      })
    })
  }

  /**
   * Waits until nothing else can continue, without advancing time. Of several waiting fibers, the one with the lowest
   * place continues.
   */
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
  /** The number of outside requests without a response. */
  outside = 0
  /** The number of tasks that were run. */
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

  /** Notes a response from the outside. */
  hear(): void {
    this.outside--
    this.#listening?.()
  }

  /** Runs one task. Returns false if there is none. */
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

  /** Advances time to the next sleeper. Returns false if there is none. */
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

  /** Waits for the next response from the outside. */
  readonly listen: Effect.Effect<void> = Effect.callback<void>((resume) => {
    if (this.outside === 0) return resume(Effect.void)
    this.#listening = () => {
      this.#listening = undefined
      resume(Effect.void)
    }
  })
}

/** The end of driving a world: done, with everything waiting, or after too many steps. */
type Ending = "done" | "idle" | "endless"

/** Runs a world until `done`, until nothing can continue, or for a number of steps. */
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
    // A foreign promise may be about to settle, so it gets two turns before time advances.
    else if (turned++ < 2) yield* Effect.yieldNow
    else if (world.advance()) turned = 0
    else return "idle"
  }
  return "endless"
})
