import { assert, describe, it } from "@effect/vitest"
import { Cause, Clock, Context, Deferred, Effect, Exit, Fiber, Option, Schema, Semaphore } from "effect"
import { TestClock } from "effect/testing"
import * as Plan from "../src/Plan.ts"
import * as TaskScheduler from "../src/TaskScheduler.ts"
import { plan, task as taskOf } from "./support/plans.ts"
import { cases } from "./support/property.ts"
import { times } from "./support/longRun.ts"

const task = (id: string, dependsOn?: ReadonlyArray<string>, parallel = true) => taskOf(id, dependsOn, parallel)

const many = (size: number): Plan.Plan => plan(Array.from({ length: size }, (_, at) => task(`t${at}`)))

const ids = (results: ReadonlyArray<TaskScheduler.TaskResult<unknown, unknown>>) => results.map(([id]) => id)

/** Tasks that sleep for a given time, and the interval in which each of them ran. */
const sleepers = (millis: (id: string) => number) => {
  const spans = new Map<string, [start: number, end: number]>()
  const run = Effect.fnUntraced(function* ({ id }: Plan.Task) {
    const start = yield* Clock.currentTimeMillis
    yield* Effect.sleep(millis(id))
    spans.set(id, [start, yield* Clock.currentTimeMillis])
    return id
  })
  return { run, spans }
}

/** Runs something in virtual time until it ends. */
const inVirtualTime = Effect.fnUntraced(function* <A, E, R>(effect: Effect.Effect<A, E, R>) {
  const fiber = yield* Effect.forkChild(effect)
  yield* TestClock.adjust("1 hour")
  return yield* Fiber.join(fiber)
})

/** How many ran at once, at most. */
const peak = (spans: Iterable<readonly [start: number, end: number]>) => {
  const moments = Array.from(spans).flatMap(([start, end]) => [
    [start, 1],
    [end, -1]
  ]) as Array<[number, number]>
  moments.sort(([a, up], [b, down]) => a - b || up - down)
  let running = 0
  return Math.max(0, ...moments.map(([, step]) => (running += step)))
}

describe("TaskScheduler.run: when tasks start", () => {
  it.effect("starts a task when its own dependencies are done, without waiting for its wave (BP-57)", () =>
    Effect.gen(function* () {
      const { run, spans } = sleepers((id) => (id === "slow" ? 100 : 10))
      yield* inVirtualTime(
        TaskScheduler.run(
          plan([task("slow"), task("fast"), task("next", ["fast"]), task("last", ["slow", "next"])]),
          run
        )
      )
      assert.deepStrictEqual(Object.fromEntries(spans), {
        slow: [0, 100],
        fast: [0, 10],
        next: [10, 20],
        last: [100, 110]
      })
    })
  )

  it.effect("runs at most `concurrency` tasks at once, and as many as possible (W-23)", () =>
    Effect.gen(function* () {
      for (const [concurrency, expected, end] of [
        [1, 1, 240],
        [3, 3, 80],
        [undefined, 8, 30],
        ["unbounded", 24, 10],
        [0, 1, 240],
        [NaN, 1, 240]
      ] as const) {
        const { run, spans } = sleepers(() => 10)
        const before = yield* Clock.currentTimeMillis
        yield* inVirtualTime(TaskScheduler.run(many(24), run, concurrency === undefined ? {} : { concurrency }))
        assert.strictEqual(peak(spans.values()), expected)
        assert.strictEqual(Math.max(...Array.from(spans.values(), ([, end]) => end)) - before, end)
      }
    })
  )

  it.effect("runs sequential tasks one at a time in plan order, beside parallel ones (BP-57)", () =>
    Effect.gen(function* () {
      const { run, spans } = sleepers((id) => (id === "p" ? 35 : 10))
      const mixed = plan([
        task("s1", [], false),
        task("s2", ["s1"], false),
        task("p"),
        task("s3", [], false),
        task("s4", ["p"], false)
      ])
      const results = yield* inVirtualTime(TaskScheduler.run(mixed, run))
      // s2 and s3 are both ready when s1 ends: s3 belongs to the earlier wave.
      assert.deepStrictEqual(Object.fromEntries(spans), {
        s1: [0, 10],
        s3: [10, 20],
        s2: [20, 30],
        p: [0, 35],
        s4: [35, 45]
      })
      assert.deepStrictEqual(ids(results), ["p", "s1", "s3", "s2", "s4"])
    })
  )

  it.effect("prefers the strategy over the tasks' flags (BP-56)", () =>
    Effect.gen(function* () {
      const tasks = [task("a", [], false), task("b", [], true), task("c", [], false)]
      for (const [strategy, expected] of [
        ["parallel", 3],
        ["sequential", 1],
        ["mixed", 2]
      ] as const) {
        const { run, spans } = sleepers(() => 10)
        yield* inVirtualTime(TaskScheduler.run(plan(tasks, strategy), run))
        assert.strictEqual(peak(spans.values()), expected, strategy)
      }
    })
  )

  it.effect("treats all tasks as pending, whatever status the plan gives (BP-54)", () =>
    Effect.gen(function* () {
      const claimed = plan([
        { ...task("a"), status: "done" },
        { ...task("b", ["a"]), status: "running" }
      ])
      const seen: Array<Plan.Task> = []
      const results = yield* TaskScheduler.run(claimed, (task) => Effect.sync(() => seen.push(task)))
      assert.deepStrictEqual(ids(results), ["a", "b"])
      assert.deepStrictEqual(
        seen.map(({ status }) => status),
        ["pending", "pending"]
      )
    })
  )

  it.effect("returns at once for a plan without tasks", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* TaskScheduler.run(plan([]), () => Effect.die("no task")), [])
    })
  )
})

describe("TaskScheduler.run: inputs and results of tasks", () => {
  it.effect("returns results in the order of the plan's waves, whatever finished first (BP-58, Trap 9)", () =>
    Effect.gen(function* () {
      const tasks = [task("10"), task("2", ["__proto__"]), task("__proto__"), task("a", ["10"]), task("1")]
      const duration = new Map([
        ["10", 50],
        ["2", 5],
        ["__proto__", 1],
        ["a", 1],
        ["1", 20]
      ])
      const { run, spans } = sleepers((id) => duration.get(id) ?? 0)
      const results = yield* inVirtualTime(TaskScheduler.run(plan(tasks), run))
      assert.deepStrictEqual(Array.from(spans.keys()), ["__proto__", "2", "1", "10", "a"])
      assert.deepStrictEqual(
        results,
        ["10", "__proto__", "1", "2", "a"].map((id) => [id, Exit.succeed(id)])
      )
    })
  )

  it.effect("passes a task the results of its dependencies, in the order it lists them (BP-61)", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      yield* TaskScheduler.run(
        plan([task("a"), task("b"), task("other"), task("c", ["b", "a", "b"])]),
        ({ id }, dependencies) =>
          Effect.suspend(() => {
            seen.push([id, dependencies])
            return id === "a" ? Effect.fail("boom a") : Effect.succeed(`r:${id}`)
          })
      )
      const b = ["b", Exit.succeed("r:b")]
      assert.deepStrictEqual(seen, [
        ["a", []],
        ["b", []],
        ["other", []],
        ["c", [b, ["a", Exit.fail("boom a")], b]]
      ])
    })
  )

  it.effect("turns a task that fails, dies, throws or is interrupted into a result, and continues (BP-59, W-26)", () =>
    Effect.gen(function* () {
      const bug = new RangeError("stack")
      const results = yield* TaskScheduler.run(
        plan([
          task("fails"),
          task("dies"),
          task("throws"),
          task("interrupts"),
          task("ok"),
          task("after", ["fails", "throws"])
        ]),
        ({ id }) => {
          switch (id) {
            case "fails":
              return Effect.fail("boom fails")
            case "dies":
              return Effect.die(bug)
            case "throws":
              throw bug
            case "interrupts":
              return Effect.interrupt
            default:
              return Effect.succeed(id)
          }
        },
        { concurrency: 2 }
      )
      const exits = new Map(results)
      assert.deepStrictEqual(exits.get("fails"), Exit.fail("boom fails"))
      assert.deepStrictEqual(exits.get("dies"), Exit.die(bug))
      assert.deepStrictEqual(exits.get("throws"), Exit.die(bug))
      const interrupted = exits.get("interrupts")
      assert.isTrue(
        interrupted !== undefined && Exit.isFailure(interrupted) && Cause.hasInterruptsOnly(interrupted.cause)
      )
      assert.deepStrictEqual(exits.get("ok"), Exit.succeed("ok"))
      assert.deepStrictEqual(exits.get("after"), Exit.succeed("after"))
    })
  )

  it.effect("turns a task whose fiber is interrupted from outside into a result, and continues", () =>
    Effect.gen(function* () {
      const victim = yield* Deferred.make<Fiber.Fiber<unknown, unknown>>()
      const results = yield* TaskScheduler.run(
        plan([task("victim"), task("killer"), task("after", ["victim"])]),
        ({ id }): Effect.Effect<string> => {
          if (id === "victim") {
            return Effect.withFiber((fiber) => Effect.andThen(Deferred.succeed(victim, fiber), Effect.never))
          }
          return id === "killer"
            ? Effect.as(Effect.flatMap(Deferred.await(victim), Fiber.interrupt), id)
            : Effect.succeed(id)
        }
      )
      assert.deepStrictEqual(
        results.map(([id, exit]) => [id, exit._tag]),
        [
          ["victim", "Failure"],
          ["killer", "Success"],
          ["after", "Success"]
        ]
      )
    })
  )

  it.effect("runs tasks with the services and references of the caller", () =>
    Effect.gen(function* () {
      class Greeting extends Context.Service<Greeting, { readonly word: string }>()("test/Greeting") {}
      const Loud = Context.Reference<boolean>("test/Loud", { defaultValue: () => false })
      const results = yield* TaskScheduler.run(plan([task("a")]), ({ id }) =>
        Effect.gen(function* () {
          return `${(yield* Greeting).word} ${id}${(yield* Loud) ? "!" : ""}`
        })
      ).pipe(Effect.provideService(Greeting, { word: "hello" }), Effect.provideService(Loud, true))
      assert.deepStrictEqual(results, [["a", Exit.succeed("hello a!")]])
    })
  )

  it.effect("does not run tasks again that already have results", () =>
    Effect.gen(function* () {
      const ran: Array<string> = []
      const results = yield* TaskScheduler.run(
        plan([task("a", [], false), task("b", ["a"]), task("c", [], false), task("d", ["b", "c"])]),
        ({ id }, dependencies) =>
          Effect.sync(() => {
            ran.push(`${id} after ${ids(dependencies).join(" ")}`)
            return `new ${id}`
          }),
        {
          finished: new Map([
            ["a", Exit.succeed("old a")],
            ["b", Exit.succeed("old b")]
          ])
        }
      )
      assert.deepStrictEqual(ran, ["c after ", "d after b c"])
      assert.deepStrictEqual(results, [
        ["a", Exit.succeed("old a")],
        ["c", Exit.succeed("new c")],
        ["b", Exit.succeed("old b")],
        ["d", Exit.succeed("new d")]
      ])
    })
  )
})

describe("TaskScheduler.run: deadlocks (BP-59)", () => {
  const stuck = (tasks: ReadonlyArray<Plan.Task>, options: TaskScheduler.Options<string> = {}) =>
    Effect.gen(function* () {
      const ran: Array<string> = []
      const error = yield* Effect.flip(
        TaskScheduler.run(plan(tasks), ({ id }) => Effect.sync(() => (ran.push(id), id)), options)
      )
      return [error.message, ran]
    })

  it.effect("reports tasks that cannot start, in plan order, after all others are done", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* stuck([task("x", ["ghost"]), task("y", ["x"]), task("a"), task("b", ["a"])]), [
        "Tasks could not complete: x, y",
        ["a", "b"]
      ])
      assert.deepStrictEqual(
        yield* stuck([task("a", ["b"]), task("b", ["a"]), task("c", ["c"]), task("d", [], false)]),
        ["Tasks could not complete: a, b, c", ["d"]]
      )
    })
  )

  it.effect("never starts two tasks with one id, so no result replaces another (R-24)", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* stuck([task("a"), task("a"), task("b", ["a"])]), [
        "Tasks could not complete: a",
        ["a", "b"]
      ])
    })
  )

  it.effect("with keepStatus, treats running tasks as never ending and done tasks as done", () =>
    Effect.gen(function* () {
      const tasks = [
        { ...task("a"), status: "running" as const },
        task("b", ["a"]),
        { ...task("c"), status: "done" as const },
        task("d", ["c"], false)
      ]
      assert.deepStrictEqual(yield* stuck(tasks, { keepStatus: true }), ["Tasks could not complete: a, b", ["d"]])
    })
  )
})

describe("TaskScheduler.run: interruption (R-15, R-18)", () => {
  it.effect("interrupts all running tasks, waits for their finalizers and starts no other", () =>
    Effect.gen(function* () {
      const started: Array<string> = []
      const ended: Array<string> = []
      const fiber = yield* Effect.forkChild(
        TaskScheduler.run(
          many(20),
          ({ id }) =>
            Effect.sync(() => started.push(id)).pipe(
              Effect.andThen(Effect.never),
              Effect.onInterrupt(() =>
                Effect.andThen(
                  Effect.sleep("1 second"),
                  Effect.sync(() => ended.push(id))
                )
              )
            ),
          { concurrency: 3 }
        )
      )
      yield* TestClock.adjust("1 minute")
      const interruption = yield* Effect.forkChild(Fiber.interrupt(fiber))
      yield* TestClock.adjust("500 millis")
      assert.deepStrictEqual([fiber.pollUnsafe(), ended], [undefined, []])
      yield* TestClock.adjust("500 millis")
      yield* Fiber.join(interruption)
      assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(fiber)))
      assert.deepStrictEqual(started, ["t0", "t1", "t2"])
      assert.deepStrictEqual(ended, started)
    })
  )

  it.effect("can be interrupted by one of its own tasks, even by one that is just starting", () =>
    Effect.gen(function* () {
      for (const first of [Effect.void, Effect.yieldNow]) {
        let ended = 0
        const run = yield* Deferred.make<Fiber.Fiber<unknown, unknown>>()
        const fiber = yield* Effect.forkChild(
          TaskScheduler.run(
            plan([task("bystander"), task("first"), task("traitor", ["first"]), task("never", ["traitor"])]),
            ({ id }) =>
              Effect.suspend((): Effect.Effect<unknown> => {
                if (id === "first") return first
                if (id === "traitor") return Effect.flatMap(Deferred.await(run), Fiber.interrupt)
                return Effect.never
              }).pipe(Effect.ensuring(Effect.sync(() => ended++)))
          )
        )
        yield* Deferred.succeed(run, fiber)
        assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(fiber)))
        assert.strictEqual(ended, 3)
      }
    })
  )

  it.effect("ends the fibers of a task when the task ends, not when the plan does", () =>
    Effect.gen(function* () {
      let alive = 0
      const results = yield* TaskScheduler.run(
        plan([task("a"), task("b", ["a"])]),
        ({ id }): Effect.Effect<number> =>
          id === "b"
            ? Effect.sync(() => alive)
            : Effect.sync(() => (alive += 1)).pipe(
                Effect.andThen(Effect.never),
                Effect.ensuring(Effect.sync(() => (alive -= 1))),
                Effect.forkChild({ startImmediately: true }),
                Effect.as(0)
              ),
        { concurrency: 1 }
      )
      assert.deepStrictEqual(results[1], ["b", Exit.succeed(0)])
    })
  )
})

describe("TaskScheduler.run: a shared semaphore", () => {
  it.effect("limits two plans together", () =>
    Effect.gen(function* () {
      const semaphore = yield* Semaphore.make(3)
      const [one, two] = [sleepers(() => 10), sleepers(() => 10)]
      yield* inVirtualTime(
        Effect.all(
          [TaskScheduler.run(many(9), one.run, { semaphore }), TaskScheduler.run(many(9), two.run, { semaphore })],
          { concurrency: "unbounded" }
        )
      )
      assert.strictEqual(one.spans.size + two.spans.size, 18)
      assert.strictEqual(peak([...one.spans.values(), ...two.spans.values()]), 3)
    })
  )

  it.effect("returns its permits when tasks fail, and when the run is interrupted while tasks wait for one", () =>
    Effect.gen(function* () {
      const semaphore = yield* Semaphore.make(2)
      yield* TaskScheduler.run(many(5), ({ id }) => (id === "t0" ? Effect.die("bug") : Effect.fail("boom")), {
        semaphore
      })
      const fiber = yield* Effect.forkChild(TaskScheduler.run(many(5), () => Effect.never, { semaphore }))
      yield* TestClock.adjust("1 second")
      yield* Fiber.interrupt(fiber)
      const free = yield* semaphore.withPermitsIfAvailable(2)(Effect.succeed("both free"))
      assert.deepStrictEqual(free, Option.some("both free"))
    })
  )

  it.effect("calls runTask only with a permit", () =>
    Effect.gen(function* () {
      const semaphore = yield* Semaphore.make(1)
      let called = 0
      const count = () => {
        called++
        return Effect.sleep("1 second")
      }
      const fiber = yield* Effect.forkChild(TaskScheduler.run(many(5), count, { semaphore }))
      yield* TestClock.adjust("1500 millis")
      assert.strictEqual(called, 2)
      yield* TestClock.adjust("1 hour")
      yield* Fiber.join(fiber)
      assert.strictEqual(called, 5)
    })
  )
})

describe("TaskScheduler.run: size", () => {
  it.effect("runs chains of thousands of tasks in either direction, each task once (R-18)", () =>
    Effect.gen(function* () {
      const size = times(20_000, 5_000)
      for (const body of [Effect.void, Effect.yieldNow]) {
        for (const direction of [1, -1]) {
          const tasks = Array.from({ length: size }, (_, at) =>
            task(`t${at}`, at - direction >= 0 && at - direction < size ? [`t${at - direction}`] : [])
          )
          const ran: Array<string> = []
          const results = yield* TaskScheduler.run(
            plan(tasks, direction === 1 ? "parallel" : "sequential"),
            ({ id }) => {
              ran.push(id)
              return body
            }
          )
          const expected = direction === 1 ? tasks : tasks.toReversed()
          assert.deepStrictEqual(
            ran,
            expected.map(({ id }) => id)
          )
          assert.deepStrictEqual(ids(results), ran)
        }
      }
    })
  )

  it("runs synchronously when no task suspends", () => {
    const results = Effect.runSync(TaskScheduler.run(many(100), ({ id }) => Effect.as(Effect.yieldNow, id)))
    assert.strictEqual(results.length, 100)
  })

  const Shape = Schema.Array(
    Schema.Struct({
      dependsOn: Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 12 }))),
      parallel: Schema.Boolean,
      millis: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 20 }))
    })
  )

  it.effect.prop(
    "runs every task of any plan once, after its dependencies, within the limit, and returns results in order",
    [Shape, Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 5 }))],
    ([shape, concurrency]) =>
      Effect.gen(function* () {
        const name = (at: number) => `t${at}`
        const tasks = shape.map(({ dependsOn, parallel }, at) =>
          task(
            name(at),
            dependsOn
              .map((back) => at - back)
              .filter((at) => at >= 0)
              .map(name),
            parallel
          )
        )
        const { run, spans } = sleepers((id) => shape[Number(id.slice(1))]?.millis ?? 0)
        const results = yield* inVirtualTime(TaskScheduler.run(plan(tasks), run, { concurrency }))
        assert.deepStrictEqual(ids(results), Plan.completionOrder(plan(tasks)))
        assert.strictEqual(spans.size, tasks.length)
        assert.isAtMost(peak(Array.from(spans.values()).filter(([start, end]) => start < end)), concurrency)
        for (const { id, dependsOn } of tasks) {
          for (const dependency of dependsOn) {
            assert.isAtMost(spans.get(dependency)?.[1] ?? Infinity, spans.get(id)?.[0] ?? -1)
          }
        }
        const sequential = ids(results).filter((id) => !tasks.find((task) => task.id === id)?.parallel)
        const times = sequential.flatMap((id) => spans.get(id) ?? [])
        assert.deepStrictEqual(
          times,
          times.toSorted((a, b) => a - b)
        )
      }),
    cases()
  )
})
