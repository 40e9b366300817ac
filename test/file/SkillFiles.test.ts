import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Option, Schema, Scope, Stream, SubscriptionRef } from "effect"
import { TestClock } from "effect/testing"
import * as Skill from "../../src/Skill.ts"
import * as SkillFiles from "../../src/file/SkillFiles.ts"
import * as SkillRegistry from "../../src/SkillRegistry.ts"
import { scope } from "../support/skillSpec.ts"

const named = (name: string, answer = name) =>
  Skill.make(name, { description: name, input: Schema.Struct({}), execute: () => Effect.succeed(answer) })

const file = (name: string, exports: SkillFiles.SkillFile["exports"]): SkillFiles.SkillFile => ({ file: name, exports })

const unreadable: SkillFiles.SkillFile["exports"] = {
  get helper(): unknown {
    throw new ReferenceError("Cannot access 'helper' before initialization")
  }
}

const registered = Effect.map(
  SkillRegistry.SkillRegistry.use((registry) => registry.all),
  (skills) => skills.map((skill) => skill.name)
)

/** Runs `test` over files that only exist here; the registry has the skill `own`. */
const over = <A, E>(
  files: ReadonlyArray<SkillFiles.SkillFile>,
  test: (
    saved: SubscriptionRef.SubscriptionRef<ReadonlyArray<SkillFiles.SkillFile>>
  ) => Effect.Effect<A, E, SkillFiles.SkillFiles | SkillRegistry.SkillRegistry>
) =>
  Effect.gen(function* () {
    const saved = yield* SubscriptionRef.make(files)
    return yield* test(saved).pipe(
      Effect.provide(SkillFiles.layerMemory(saved).pipe(Layer.provideMerge(SkillRegistry.layer(named("own")))))
    )
  })

describe("SkillFiles", () => {
  it.effect("registers default exports, named exports and lists of skills", () => {
    const a = named("a")
    return over(
      [
        file("1.ts", { default: a, again: a, helper: 5, version: "1" }),
        file("2.ts", { all: [named("b"), named("c")] })
      ],
      () =>
        Effect.gen(function* () {
          assert.deepStrictEqual(yield* registered, ["own", "a", "b", "c"])
          const status = yield* SkillFiles.SkillFiles.use((files) => files.status)
          assert.deepStrictEqual(status, { skills: ["a", "b", "c"], problem: undefined })
        })
    )
  })

  it.effect("reloads once changes have settled", () =>
    over([file("1.ts", { default: named("a") })], (saved) =>
      Effect.gen(function* () {
        yield* SubscriptionRef.set(saved, [file("1.ts", { default: named("b") })])
        yield* TestClock.adjust("60 millis")
        yield* SubscriptionRef.set(saved, [file("1.ts", { default: named("c") })])
        yield* TestClock.adjust("60 millis")
        assert.deepStrictEqual(yield* registered, ["own", "a"])
        yield* TestClock.adjust("60 millis")
        assert.deepStrictEqual(yield* registered, ["own", "c"])
      })
    )
  )

  it.effect("keeps the previous skills when a file cannot be loaded, and reports the problem (W-32)", () =>
    over([file("1.ts", { default: named("a") })], (saved) =>
      Effect.gen(function* () {
        const files = yield* SkillFiles.SkillFiles
        const bad: ReadonlyArray<readonly [ReadonlyArray<SkillFiles.SkillFile>, string, string]> = [
          [[file("1.ts", { default: named("a") }), file("2.ts", { helper: 1 })], "2.ts", "exports no skill"],
          [[file("1.ts", { default: named("a") }), file("2.ts", unreadable)], "2.ts", "its exports cannot be read"],
          [
            [file("1.ts", { default: named("a") }), file("2.ts", { default: named("a") })],
            "2.ts",
            "'a' is already defined in 1.ts"
          ],
          [
            [file("1.ts", { default: named("b") }), file("2.ts", { default: named("own") })],
            "2.ts",
            "'own' (native) is already registered (native)"
          ],
          [
            [file("1.ts", { default: named("b") }), file("2.ts", { default: named("not a name") })],
            "2.ts",
            "cannot be registered"
          ]
        ]
        for (const [next, culprit, reason] of bad) {
          yield* SubscriptionRef.set(saved, next)
          const error = yield* Effect.flip(files.reload)
          assert.strictEqual(error.problems[0]?.file, culprit)
          assert.include(error.problems[0]?.reason, reason)
          assert.deepStrictEqual(yield* registered, ["own", "a"])
          assert.deepStrictEqual(yield* files.status, { skills: ["a"], problem: error })
        }
        yield* SubscriptionRef.set(saved, [file("1.ts", { default: named("b") })])
        assert.deepStrictEqual(yield* files.reload, ["b"])
        assert.deepStrictEqual(yield* files.status, { skills: ["b"], problem: undefined })
      })
    )
  )

  it.effect("continues watching after a change that could not be loaded", () =>
    over([file("1.ts", { default: named("a") })], (saved) =>
      Effect.gen(function* () {
        for (const exports of [{}, unreadable]) {
          yield* SubscriptionRef.set(saved, [file("1.ts", exports)])
          yield* TestClock.adjust("1 second")
          assert.deepStrictEqual(yield* registered, ["own", "a"])
        }
        yield* SubscriptionRef.set(saved, [file("1.ts", { default: named("z") })])
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(yield* registered, ["own", "z"])
      })
    )
  )

  it.effect("lets a running call keep its skill while the file is reloaded", () =>
    over([file("1.ts", { default: named("a", "old") })], (saved) =>
      Effect.gen(function* () {
        const registry = yield* SkillRegistry.SkillRegistry
        const files = yield* SkillFiles.SkillFiles
        const held = Option.getOrThrow(registry.find("a"))
        yield* SubscriptionRef.set(saved, [file("1.ts", { default: named("a", "new") })])
        yield* files.reload
        assert.strictEqual(yield* held.call({}, scope), "old")
        assert.strictEqual(yield* Option.getOrThrow(registry.find("a")).call({}, scope), "new")
      })
    )
  )

  it.effect("emits its status after every attempt", () =>
    over([file("1.ts", { default: named("a") })], (saved) =>
      Effect.gen(function* () {
        const files = yield* SkillFiles.SkillFiles
        const seen = yield* Effect.forkChild(Stream.runCollect(Stream.take(files.changes, 2)), {
          startImmediately: true
        })
        yield* SubscriptionRef.set(saved, [file("1.ts", { default: named("b") })])
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(
          (yield* Fiber.join(seen)).map((status) => status.skills),
          [["a"], ["b"]]
        )
      })
    )
  )

  it.effect("keeps few statuses for a slow subscriber, and always the newest", () =>
    over([file("1.ts", { skill: named("a") })], () =>
      Effect.gen(function* () {
        const files = yield* SkillFiles.SkillFiles
        const gate = yield* Deferred.make<void>()
        const heard: Array<SkillFiles.Status> = []
        const slow = Stream.runForEach(files.changes, (status) =>
          Effect.andThen(
            Effect.sync(() => heard.push(status)),
            Deferred.await(gate)
          )
        )
        const reading = yield* Effect.forkChild(slow, { startImmediately: true })
        for (let times = 0; times < 100; times++) yield* Effect.andThen(files.reload, Effect.yieldNow)
        yield* Deferred.succeed(gate, undefined)
        yield* TestClock.adjust("1 second")
        assert.isBelow(heard.length, 20)
        assert.strictEqual(heard.at(-1), yield* files.status)
        yield* Fiber.interrupt(reading)
      })
    )
  )

  it.effect("ends status subscriptions with its layer", () =>
    Effect.gen(function* () {
      const source = { load: Effect.succeed([file("1.ts", { default: named("a") })]), changes: Stream.never }
      const scope = yield* Scope.make()
      const layer = SkillFiles.layer(source).pipe(Layer.provide(SkillRegistry.layer()))
      const files = Context.get(yield* Layer.buildWithScope(layer, scope), SkillFiles.SkillFiles)
      const seen = yield* Effect.forkChild(Stream.runCollect(files.changes), { startImmediately: true })
      yield* TestClock.adjust("1 second")
      yield* Scope.close(scope, Exit.void)
      assert.lengthOf(yield* Fiber.join(seen), 1)
      assert.lengthOf(yield* Stream.runCollect(files.changes), 0)
    })
  )

  it.effect("runs one load at a time: of two loads the later one wins", () =>
    Effect.gen(function* () {
      // The first load asked for takes long, the second none: without a queue the first would end last.
      const answers = ["start", "older", "newer"]
      let asked = 0
      const source: SkillFiles.FileSource = {
        load: Effect.suspend(() => {
          const answer = answers[asked++] ?? "none"
          const loaded: ReadonlyArray<SkillFiles.SkillFile> = [file("1.ts", { default: named(answer) })]
          return answer === "older" ? Effect.delay(Effect.succeed(loaded), "1 minute") : Effect.succeed(loaded)
        }),
        changes: Stream.never
      }
      const context = yield* Layer.build(SkillFiles.layer(source))
      const files = Context.get(context, SkillFiles.SkillFiles)
      const older = yield* Effect.forkChild(files.reload, { startImmediately: true })
      const newer = yield* Effect.forkChild(files.reload, { startImmediately: true })
      yield* TestClock.adjust("2 minutes")
      assert.deepStrictEqual([yield* Fiber.join(older), yield* Fiber.join(newer)], [["older"], ["newer"]])
      assert.deepStrictEqual(yield* registered, ["newer"])
    }).pipe(Effect.provide(SkillRegistry.layer()))
  )

  it.effect("fails when the first load fails, and leaves no skill", () =>
    Effect.gen(function* () {
      const saved = yield* SubscriptionRef.make<ReadonlyArray<SkillFiles.SkillFile>>([
        file("1.ts", { default: named("a") }),
        file("2.ts", {})
      ])
      const error = yield* Effect.flip(Effect.scoped(Layer.build(SkillFiles.layerMemory(saved))))
      assert.instanceOf(error, SkillFiles.SkillFilesInvalid)
      assert.deepStrictEqual(yield* registered, ["own"])
    }).pipe(Effect.provide(SkillRegistry.layer(named("own"))))
  )

  it.effect("provides the skills with the services of the layer", () => {
    class Greeting extends Context.Service<Greeting, { readonly text: string }>()("test/FileGreeting") {}
    const greet = Skill.make("greet", {
      description: "",
      input: Schema.Struct({}),
      execute: () => Effect.map(Greeting, ({ text }) => text)
    })
    return Effect.gen(function* () {
      const saved = yield* SubscriptionRef.make<ReadonlyArray<SkillFiles.SkillFile>>([file("g.ts", { greet })])
      const files = SkillFiles.layerMemory<Greeting>(saved).pipe(
        Layer.provide(Layer.succeed(Greeting, { text: "hello" }))
      )
      yield* Layer.build(files)
      const registry = yield* SkillRegistry.SkillRegistry
      assert.strictEqual(yield* Option.getOrThrow(registry.find("greet")).call({}, scope), "hello")
    }).pipe(Effect.provide(SkillRegistry.layer()))
  })
})
