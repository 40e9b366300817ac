/**
 * Programs in threads of their own, each with QuickJS.
 *
 * A thread is kept while its program waits for calls, as long as few of them do. A program without one starts again in
 * another thread, with the results of its earlier steps.
 */

import * as Effect from "effect/Effect"
import * as Duration from "effect/Duration"
import * as Result from "effect/Result"
import * as Semaphore from "effect/Semaphore"
import { Worker } from "node:worker_threads"
import {
  type Code,
  type CodeExecution,
  CodeFailed,
  type CodeResult,
  type CodeStep,
  type CodeInterpreter
} from "../../CodeInterpreter.ts"
import * as Bounds from "../../kit/bounds.ts"
import { type Json, parseJson } from "../../kit/json.ts"
import * as Snapshot from "../../kit/snapshot.ts"
import type { Program, Reply, Settled } from "./quickJsMessages.ts"

/** The threads of one layer: at most `most` that run, and as many that wait. Mutable. */
export class Threads {
  readonly #most: number
  readonly #running: Semaphore.Semaphore
  /** Programs whose threads wait, the longest waiting first. */
  readonly #waiting = new Set<Execution>()
  readonly #open = new Set<Execution>()
  readonly #ending = new Set<Promise<unknown>>()

  constructor(most: number) {
    this.#most = most
    this.#running = Semaphore.makeUnsafe(most)
  }

  readonly open: CodeInterpreter["Service"]["open"] = (code) =>
    Effect.acquireRelease(
      Effect.sync(() => {
        const execution = new Execution(code, this)
        this.#open.add(execution)
        return execution
      }),
      (execution) =>
        Effect.sync(() => {
          this.#open.delete(execution)
          execution.end()
        })
    )

  /** Ends all threads, also those of programs that nobody closed, and waits for their ends. */
  readonly close: Effect.Effect<void> = Effect.promise(() => {
    for (const execution of this.#open) execution.end()
    return Promise.all(this.#ending)
  }).pipe(Effect.asVoid)

  /** Runs a step, in its turn. */
  run<A, E>(execution: Execution, step: Effect.Effect<A, E>): Effect.Effect<A, E> {
    const turn = Effect.suspend(() => {
      this.#waiting.delete(execution)
      return Effect.tap(step, () => Effect.sync(() => this.#wait(execution)))
    })
    return this.#running.withPermits(1)(turn)
  }

  end(execution: Execution, worker: Worker): void {
    this.#waiting.delete(execution)
    const ending: Promise<unknown> = worker.terminate().finally(() => this.#ending.delete(ending))
    this.#ending.add(ending)
  }

  #wait(execution: Execution): void {
    this.#waiting.add(execution)
    const [first] = this.#waiting
    if (this.#waiting.size > this.#most) first?.end()
  }
}

/** A program and the results it was given. Mutable: it advances with its steps. */
class Execution implements CodeExecution {
  readonly #program: Program
  readonly #threads: Threads
  readonly #passed: Array<ReadonlyArray<Settled>> = []
  #worker: Worker | undefined

  constructor({ limits: { cpuTime, ...limits }, ...code }: Code, threads: Threads) {
    this.#program = { ...code, ...limits, cpuMillis: Duration.toMillis(cpuTime) }
    this.#threads = threads
  }

  readonly next = (results: ReadonlyArray<CodeResult>): Effect.Effect<CodeStep, CodeFailed> =>
    this.#threads
      .run(
        this,
        Effect.suspend(() => {
          const settled = results.map(settledOf)
          const steps = this.#worker === undefined ? [...this.#passed, settled] : [settled]
          return Effect.map(this.#ask(steps), (reply) => {
            this.#passed.push(settled)
            return reply
          })
        })
      )
      .pipe(
        Effect.onError(() => Effect.sync(() => this.end())),
        Effect.flatMap((reply) => Effect.fromResult(stepOf(reply)))
      )

  /** Ends its thread. */
  end(): void {
    if (this.#worker !== undefined) this.#threads.end(this, this.#worker)
    this.#worker = undefined
  }

  #ask(steps: ReadonlyArray<ReadonlyArray<Settled>>): Effect.Effect<Reply, CodeFailed> {
    const worker = (this.#worker ??= start(this.#program))
    // The thread measures its own time. This bounds code that it cannot interrupt, also on a busy machine. It is real time,
    // whatever the clock of the program shows.
    const longest = startMillis + this.#program.cpuMillis * busy * steps.length
    return Effect.callback<Reply, CodeFailed>((resume) => {
      const leave = () => {
        clearTimeout(timer)
        worker.off("message", replied).off("error", failed).off("exit", stopped)
      }
      const end = (reply: Effect.Effect<Reply, CodeFailed>) => {
        leave()
        resume(reply)
      }
      const replied = (reply: Reply) => end(Effect.succeed(reply))
      const failed = (error: unknown) => end(Effect.fail(unavailable(error)))
      const stopped = () => failed("its thread stopped")
      const timer = setTimeout(() => end(Effect.fail(tooLong)), longest)
      worker.on("message", replied).on("error", failed).on("exit", stopped)
      worker.postMessage(steps)
      return Effect.sync(leave)
    })
  }
}

const startMillis = 30_000

/** How much longer than its processor time a program may take. */
const busy = 4

/** The file of the thread stands beside this one, in the sources and in the package. */
const file = new URL(`./quickJsWorker.${import.meta.url.endsWith(".ts") ? "ts" : "js"}`, import.meta.url)

const start = (program: Program): Worker => {
  const worker = new Worker(file, {
    workerData: program,
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: 128 }
  })
  worker.on("error", ignored)
  return worker
}

/** An error of a thread that waits is found with its next step. */
const ignored = () => {}

const unavailable = (error: unknown): CodeFailed =>
  new CodeFailed({ reason: "unavailable", detail: `QuickJS is not available: ${String(error)}` })

const tooLong = new CodeFailed({
  reason: "cpu",
  detail: "The program computed for too long between its calls"
})

/** Returns the result of a call as a thread gets it. */
export const settledOf = (result: CodeResult): Settled =>
  result._tag === "Value"
    ? { type: "value", json: JSON.stringify(result.value) }
    : { type: "error", name: result.name, message: result.message }

/** Reads the reply of a thread, which holds what a program wrote. */
export const stepOf = (reply: Reply): Result.Result<CodeStep, CodeFailed> => {
  if (reply.type === "failed") {
    const { type: _, ...facts } = reply
    return Result.fail(new CodeFailed(facts))
  }
  if (reply.type === "returned") {
    return Result.map(read(reply.value), (value) => ({ _tag: "Returned", value, log: reply.log }))
  }
  return Result.map(
    Result.all(reply.calls.map(({ input, ...call }) => Result.map(read(input), (input) => ({ ...call, input })))),
    (calls) => ({ _tag: "Calls", calls })
  )
}

const read = (json: string): Result.Result<Json, CodeFailed> => {
  const refused = (reason: string) =>
    new CodeFailed({ reason: "output", detail: `The program returned or passed no JSON: ${reason}` })
  return Result.flatMap(Result.mapError(parseJson(json, Bounds.jsonDepth), refused), (value) =>
    Result.mapError(Snapshot.take(value), ({ reason }) => refused(reason))
  )
}
