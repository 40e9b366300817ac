/**
 * A program of one run while it is in this process: its fiber, and the calls that wait for their results.
 *
 * The program runs until all of its fibers wait. The calls they wait for are the next reply, and the results of that
 * turn let them continue. In a process that does not have the fiber yet, the recorded turns are replayed first: a
 * recorded call is not made again, since its result is read from the state of the run.
 */

import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Random from "effect/Random"
import { Scheduler } from "effect/Scheduler"
import * as Semaphore from "effect/Semaphore"
import { ProgramChanged, ProgramImpure } from "../../KernelError.ts"
import { Limits } from "../../Limits.ts"
import type { Turn } from "../../RunModel.ts"
import { plain, type JsonObject } from "../../kit/json.ts"
import { shorten } from "../../kit/text.ts"
import type { ReadableRun } from "../state/currentRun.ts"
import { turnLog } from "../state/state.ts"
import { Outside } from "./outside.ts"
import { CallFailed, type Recorded, read } from "./recordedResult.ts"
import { recordedClock } from "./recordedClock.ts"
import { StepScheduler } from "./stepScheduler.ts"

/** A call that a program makes. */
export interface Asked {
  /** The time until which it waits, for a call that only waits. */
  readonly until?: number
  /** The name for people: that of the skill, the agent or the step. */
  readonly label: string
  /** The name of the skill or the agent that is called. */
  readonly name: string
  readonly input: JsonObject
  /** The line that makes it, in code of a model. */
  readonly line?: number
  /** The work of a step, which runs when its call is dispatched. */
  readonly effect?: Effect.Effect<unknown, unknown>
}

/** The calls of a running program. `Program.make` provides it. */
export class Program extends Context.Service<
  Program,
  {
    /** Makes a call and waits for its recorded result. */
    readonly call: (asked: Asked) => Effect.Effect<Recorded, CallFailed>
    /** Waits for an effect that is no call. */
    readonly compute: <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E>
    /** The version of the program that its run started with. */
    readonly version: number
  }
>()("kernai/Program") {}

/** A call that waits for its result. */
interface Waiting extends Asked {
  readonly resume: (result: Exit.Exit<Recorded, CallFailed>) => void
}

/** An effect that the program waits for. Runs it, and returns what passes the result to the program. */
type Computing = Effect.Effect<() => void>

/** Fails when a program cannot be replayed. */
export type ReplayError = ProgramChanged | ProgramImpure

/** The facts that a program starts with, which its first reply records. */
export interface Start {
  readonly version: number
  /** The seed of its random numbers. */
  readonly seed: string
}

/** The program of one run. Mutable: it advances with the turns of the run. */
export class Session {
  readonly start: Start
  readonly #program: string
  readonly #body: Effect.Effect<string, unknown>
  readonly #scheduler = new StepScheduler()
  readonly #lock = Semaphore.makeUnsafe(1)
  #fiber: Fiber.Fiber<string, unknown> | undefined
  #waiting: Array<Waiting> = []
  #computing: ReadonlyArray<Computing> = []
  /** The calls of the open turn. Undefined until the program has made them. */
  #sent: ReadonlyArray<Waiting> | undefined
  /** The number of turns before it, and of those whose results it has received. */
  #received: number
  #now = 0
  #isRunning = false
  #isImpure = false
  #last: string | undefined

  constructor(program: string, start: Start, before: number, body: Effect.Effect<string, unknown, Program>) {
    const { seed, version } = start
    const clock = recordedClock(
      () => this.#now,
      (until) => this.#sleep(until)
    )
    this.start = start
    this.#program = program
    this.#received = before
    this.#body = Random.withSeed(body, seed).pipe(
      Effect.provideService(Program, {
        version,
        call: (asked) => this.#call(asked),
        compute: (effect) => this.#compute(effect)
      }),
      Effect.provideService(Clock.Clock, clock)
    )
  }

  /**
   * Replays the recorded turns, then runs the program until it waits. Returns its end, or the calls of the open turn. A
   * part of the caller's generator.
   */
  *next(run: ReadableRun): Effect.fn.Return<Exit.Exit<string, unknown> | ReadonlyArray<Asked>, ReplayError> {
    const { currentTurn } = run.state
    const turns = turnLog(run.state)
    for (let turn = turns.at(this.#received); turn !== undefined; turn = turns.at(this.#received)) {
      yield* this.#reply(turn)
      yield* this.#receive(turn, turns.at(this.#received + 1) ?? currentTurn, run)
    }
    if (currentTurn !== undefined) yield* this.#reply(currentTurn)
    return this.#fiber?.pollUnsafe() ?? this.#sent ?? none
  }

  /** Returns what a step of the open turn runs. Undefined if the turn has no such step. */
  readonly effectOf = (
    run: ReadableRun,
    callId: string
  ): Effect.Effect<Effect.Effect<unknown, unknown> | undefined, ReplayError> =>
    // Steps that run at once replay the program once.
    this.#lock
      .withPermits(1)(replayed(this, run))
      .pipe(
        Effect.map(() => {
          const { currentTurn } = run.state
          const index = currentTurn === undefined ? -1 : usesOf(currentTurn).findIndex((use) => use.callId === callId)
          return this.#sent?.[index]?.effect
        })
      )

  /** Interrupts the program, which releases what it has acquired. */
  readonly close: Effect.Effect<void> = Effect.suspend(() => {
    const fiber = this.#fiber
    if (fiber === undefined || fiber.pollUnsafe() !== undefined) return Effect.void
    this.#scheduler.release()
    return Limits.use(({ cleanUpTimeout }) => Effect.timeoutOption(Fiber.interrupt(fiber), cleanUpTimeout))
  })

  #call(asked: Asked): Effect.Effect<Recorded, CallFailed> {
    return Effect.callback<Recorded, CallFailed>((resume) => {
      if (!this.#isRunning) this.#isImpure = true
      const waiting = { ...asked, resume }
      this.#waiting.push(waiting)
      return Effect.sync(() => {
        this.#waiting = this.#waiting.filter((other) => other !== waiting)
      })
    })
  }

  #compute<A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> {
    return Effect.callback<A, E>((resume) => {
      const computing: Computing = Effect.map(Effect.exit(effect), (exit) => () => resume(exit))
      this.#computing = [...this.#computing, computing]
      return Effect.sync(() => {
        this.#computing = this.#computing.filter((other) => other !== computing)
      })
    })
  }

  #sleep(until: number): Effect.Effect<void> {
    return Effect.ignore(this.#call({ label: "sleep", name: sleepName, input: { until }, until }))
  }

  /** Runs the program until it waits, and takes its calls as those of the turn, which must be the recorded ones. */
  *#reply(turn: Turn): Effect.fn.Return<void, ReplayError> {
    if (this.#sent !== undefined) return
    this.#now = turn.startedAt
    yield* this.#run(() => {
      this.#fiber ??= Effect.runForkWith(Context.make(Scheduler, this.#scheduler))(this.#body)
    })
    yield* this.#wake()
    const hasEnded = this.#fiber?.pollUnsafe() !== undefined
    if (this.#isImpure || (!hasEnded && this.#waiting.length === 0)) {
      return yield* new ProgramImpure({
        program: this.#program,
        ...(this.#last === undefined ? {} : { after: this.#last })
      })
    }
    const { blocksPerReply } = yield* Limits
    const recorded = turn.message === undefined ? undefined : usesOf(turn)
    const pending = hasEnded ? none : pendingOf(this.#waiting)
    const sent = pending.slice(0, recorded?.length ?? blocksPerReply)
    const changed = recorded && this.#changed(turn, recorded, recorded.length === 0 ? pending : sent)
    if (changed !== undefined) return yield* changed
    this.#waiting = this.#waiting.filter((waiting) => !sent.some(({ resume }) => resume === waiting.resume))
    this.#sent = sent
    this.#last = sent.at(-1)?.label ?? this.#last
  }

  /** Lets the waits continue whose time has come, in the order of their times. */
  *#wake(): Effect.fn.Return<void> {
    for (
      let due = earliest(this.#waiting);
      due !== undefined && due.until <= this.#now;
      due = earliest(this.#waiting)
    ) {
      const { waiting } = due
      this.#waiting = this.#waiting.filter((other) => other !== waiting)
      yield* this.#run(() => waiting.resume(woken))
    }
  }

  /** Returns the first call that is no longer the recorded one, if there is any. */
  #changed(turn: Turn, recorded: ReadonlyArray<Use>, now: ReadonlyArray<Asked>): ProgramChanged | undefined {
    for (let index = 0; index < Math.max(recorded.length, Math.min(now.length, 1)); index++) {
      const [was, is] = [recorded[index], now[index]]
      if (was?.name === is?.name && Equal.equals(was?.input, is?.input)) continue
      return new ProgramChanged({
        program: this.#program,
        turn: turn.turn,
        ...(was && { recorded: shown(was) }),
        ...(is && { now: shown(is) })
      })
    }
    return undefined
  }

  /**
   * Passes the results of a turn to the program, in the order of its calls, which no crash changes. A question that
   * nobody answered in time comes after the waits that end at that time, so that a timeout of the program is one.
   */
  *#receive(turn: Turn, next: Turn | undefined, run: ReadableRun): Effect.fn.Return<void> {
    const uses = usesOf(turn)
    const results = new Map(turn.completed.map((result) => [result.callId, result]))
    const late: Array<() => void> = []
    this.#now = next?.startedAt ?? this.#now
    for (const [index, { label, resume }] of (this.#sent ?? none).entries()) {
      const result = results.get(uses[index]?.callId ?? "")
      const exit = result === undefined ? Exit.fail(notRun(label)) : yield* read(label, result, run.media)
      if (result?.error?.name === notAnswered) late.push(() => resume(exit))
      else yield* this.#run(() => resume(exit))
    }
    yield* this.#wake()
    for (const resume of late) yield* this.#run(resume)
    this.#sent = undefined
    this.#received++
  }

  /**
   * Runs the fibers of the program until all of them wait for calls. Yields in between, since a program may run for long.
   * An effect that is interrupted with the run stays, and runs again when the run continues.
   */
  *#run(first: () => void): Effect.fn.Return<void> {
    let start: (() => void) | undefined = first
    for (;;) {
      this.#isRunning = true
      start?.()
      start = undefined
      const isLeft = this.#scheduler.run(manyTasks)
      this.#isRunning = false
      const [computing] = this.#computing
      if (isLeft) yield* Effect.yieldNow
      else if (computing === undefined) return
      else {
        const outside = yield* Outside
        start = yield* outside(computing)
        this.#computing = this.#computing.filter((other) => other !== computing)
      }
    }
  }
}

/** Brings a program to the open turn of its run. */
const replayed = Effect.fnUntraced(function* (session: Session, run: ReadableRun): Effect.fn.Return<void, ReplayError> {
  yield* session.next(run)
})

/** The name of the skill that waits until a time. */
export const sleepName = "program_sleep"

/** The name of the error of a question that nobody answered in time. */
export const notAnswered = "NotAnswered"

/** Returns the wait that ends first. */
const earliest = (calls: ReadonlyArray<Waiting>): { readonly waiting: Waiting; readonly until: number } | undefined => {
  let first: { readonly waiting: Waiting; readonly until: number } | undefined
  for (const waiting of calls) {
    const { until } = waiting
    if (until !== undefined && until < (first?.until ?? Infinity)) first = { waiting, until }
  }
  return first
}

/**
 * Returns the calls of the next reply. Waits are not sent beside other calls, whose results would have to wait for them:
 * the time of the following turn tells which of them have ended. A question is declined when the first wait ends.
 */
const pendingOf = (calls: ReadonlyArray<Waiting>): ReadonlyArray<Waiting> => {
  const first = earliest(calls)
  if (first === undefined) return calls
  const others = calls.filter(({ until }) => until === undefined)
  if (others.length === 0) return [first.waiting]
  return others.map((call) =>
    call.name === askName && !(Number(call.input["answerBy"]) <= first.until)
      ? { ...call, input: { ...call.input, answerBy: first.until } }
      : call
  )
}

/** The name of the skill that asks a person. */
export const askName = "program_ask"

const notRun = (call: string) => new CallFailed({ call, error: "NotRun", detail: "was not run" })

const woken: Exit.Exit<Recorded> = Exit.succeed({ content: [], value: null })

/** A call as the reply of a turn has it, before any hook or person changed it. */
interface Use {
  readonly callId: string
  readonly name: string
  readonly input: unknown
}

const usesOf = ({ message }: Turn): ReadonlyArray<Use> =>
  message?.content.flatMap((part) => (part.type === "tool_use" ? [part] : [])) ?? none

const shown = ({ input, name }: Pick<Use, "name" | "input">): string =>
  shorten(`${name} ${JSON.stringify(plain(input))}`, 500)

const none: ReadonlyArray<never> = []

/** The number of tasks of a program after which its session yields. */
const manyTasks = 1_000
