/**
 * scheduler.json: waves, the order of results, failures and deadlocks (BP-56 to BP-59).
 *
 * Our scheduler starts tasks earlier than the waves, so each vector runs under
 * every limit and with every task taking another time: results and the order
 * among sequential tasks must stay those of the waves.
 */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber, Result } from "effect"
import { TestClock } from "effect/testing"
import * as taskGraph from "../../src/internal/words/taskGraph.ts"
import * as Plan from "../../src/Plan.ts"
import * as TaskScheduler from "../../src/TaskScheduler.ts"
import * as Vectors from "../support/vectors.ts"

interface Vector {
  readonly id: string
  readonly title: string
  readonly strategy: string | null
  readonly hand_built_context?: boolean
  readonly fail?: ReadonlyArray<string>
  readonly tasks: ReadonlyArray<{
    readonly id: string
    readonly input: string
    readonly depends_on?: ReadonlyArray<string>
    readonly parallel?: boolean
    readonly status?: Plan.Status
  }>
  readonly expected: {
    readonly waves?: ReadonlyArray<{
      readonly parallel?: ReadonlyArray<string>
      readonly sequential?: ReadonlyArray<string>
    }>
    readonly results?: ReadonlyArray<readonly [id: string, text: string]>
    readonly statuses?: ReadonlyArray<readonly [id: string, status: string]>
    readonly error?: string
    readonly message?: string
  }
}

const file = Vectors.load<{ readonly vectors: ReadonlyArray<Vector> }>("scheduler", {
  vectors: [
    {
      ...Vectors.about,
      strategy: true,
      hand_built_context: true,
      fail: true,
      tasks: [{ id: true, input: true, depends_on: true, parallel: true, status: true }],
      expected: { waves: true, results: true, statuses: true, error: true, message: true }
    }
  ]
})
const tally = Vectors.tally("scheduler.json")

const planOf = ({ strategy, tasks }: Vector): Plan.Plan => ({
  goal: "",
  strategy: strategy === "parallel" || strategy === "sequential" ? strategy : "mixed",
  tasks: tasks.map(({ id, input, depends_on, parallel, status }) => ({
    id,
    input,
    parallel: parallel ?? false,
    dependsOn: depends_on ?? [],
    status: status ?? "pending"
  }))
})

/** A result as the kernel tells it (BP-59). */
const text = (exit: Exit.Exit<string, string>): string =>
  Exit.isSuccess(exit) ? exit.value : `error: ${String(Cause.squash(exit.cause))}`

/** Waves as the vectors write them: one entry for the parallel tasks, one for the sequential ones. */
const wavesOf = (plan: Plan.Plan, keepStatus: boolean) => {
  const tasks = keepStatus ? plan.tasks : Plan.pending(plan).tasks
  const named = (positions: ReadonlyArray<number>) => positions.map((position) => tasks[position]?.id)
  return taskGraph
    .make(tasks, (task) => Plan.isParallel(plan.strategy, task))
    .waves.flatMap(({ parallel, sequential }) => [
      ...(parallel.length > 0 ? [{ parallel: named(parallel) }] : []),
      ...(sequential.length > 0 ? [{ sequential: named(sequential) }] : [])
    ])
}

/** One run: what it gave, what ran and in which order the sequential tasks started. */
const observe = Effect.fnUntraced(function* (vector: Vector, concurrency: number, millis: (at: number) => number) {
  const plan = planOf(vector)
  const texts = new Map<string, string>()
  const sequential: Array<string> = []
  const fiber = yield* Effect.forkChild(
    Effect.result(
      TaskScheduler.run(
        plan,
        (task) =>
          Effect.suspend(() => {
            if (!Plan.isParallel(plan.strategy, task)) sequential.push(task.id)
            return vector.fail?.includes(task.id) ? Effect.fail(`boom ${task.id}`) : Effect.succeed(`r:${task.id}`)
          }).pipe(
            Effect.delay(millis(plan.tasks.findIndex(({ id }) => id === task.id))),
            Effect.onExit((exit) => Effect.sync(() => texts.set(task.id, text(exit))))
          ),
        { concurrency, keepStatus: vector.hand_built_context === true }
      )
    )
  )
  yield* TestClock.adjust("1 minute")
  return { result: yield* Fiber.join(fiber), texts, sequential }
})

describe("scheduler.json", () => {
  for (const vector of file.vectors) {
    const { waves, results, statuses, error, message } = vector.expected
    if (waves === undefined || results === undefined || (error !== undefined && error !== "DeadlockError")) {
      tally.skip(vector.id)
      continue
    }
    it.effect(`${vector.id}: ${vector.title}, ${vector.strategy}`, () =>
      Effect.gen(function* () {
        tally.ran()
        const keepStatus = vector.hand_built_context === true
        assert.deepStrictEqual<unknown>(wavesOf(planOf(vector), keepStatus), waves)
        const size = vector.tasks.length
        for (const concurrency of [1, 2, size, Infinity]) {
          for (const millis of [() => 0, (at: number) => at, (at: number) => size - at, (at: number) => (at * 7) % 5]) {
            const run = yield* observe(vector, concurrency, millis)
            const expected = results.map(([id, text]) => [id, text])
            if (message === undefined) {
              const told = Result.getOrThrow(run.result)
              assert.deepStrictEqual(
                told.map(([id, exit]) => [id, text(exit)]),
                expected
              )
              const finished = told.map(([id]) => [id, "done"])
              const given = vector.tasks.filter(({ status }) => status === "done").map(({ id }) => [id, "done"])
              assert.deepStrictEqual(
                [...finished, ...given].toSorted(),
                (statuses ?? finished).map(([id, status]) => [id ?? "", status ?? ""]).toSorted()
              )
            } else {
              assert.strictEqual(Result.isFailure(run.result) ? run.result.failure.message : "completed", message)
              assert.deepStrictEqual(
                results.map(([id]) => [id, run.texts.get(id)]),
                expected
              )
              assert.strictEqual(run.texts.size, results.length)
            }
            assert.deepStrictEqual(
              run.sequential,
              waves.flatMap((wave) => wave.sequential ?? [])
            )
          }
        }
      })
    )
  }
  tally.report()
})
