/** Places are shared between those for whom runs are started, whatever the runs of one of them do. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import { Kernel, MediaStore, ProtocolRegistry, RunDriver, RunStore, RunWorker, Skill, SkillRegistry } from "kernai"
import { agent, clerk } from "../support/clerk.ts"

/** The caller is the first part of the id, and its tenant the part before it. */
const partiesOf = ({ runId }: RunStore.RunHead) => runId.split("/").slice(0, -1)

const started: Array<string> = []

/** Notes the run that is started, which ends after a second unless its caller is `hog`. */
const pay = Skill.dynamic("pay", {
  description: "pays",
  effects: "read",
  inputSchema: { type: "object" },
  execute: (_, { runId }) =>
    Effect.andThen(
      Effect.sync(() => started.push(runId)),
      runId.startsWith("hog") ? Effect.never : Effect.as(Effect.sleep("1 second"), "ok")
    )
})

const services = Effect.map(RunStore.makeMemory, (store) =>
  Kernel.layer.pipe(
    Layer.provide([SkillRegistry.layer(pay), ProtocolRegistry.layer(), MediaStore.layerMemory, clerk("paid")]),
    Layer.provideMerge(Layer.succeed(RunStore.RunStore, store))
  )
)

const submit = (runIds: ReadonlyArray<string>) =>
  Effect.forEach(runIds, (runId) => Kernel.submit(agent, "pay eva", { runId }), { discard: true })

const numbered = (party: string, count: number) => Array.from({ length: count }, (_, index) => `${party}/${index}`)

/** Waits until all that can happen without time has happened. */
const settled = Effect.repeat(TestClock.adjust("1 millis"), { times: 50 })

/** Lets time pass, a second at a time. */
const seconds = (times: number) =>
  Effect.repeat(Effect.andThen(TestClock.adjust("950 millis"), settled), { times: times - 1 })

/** Interrupts fibers while the clock goes on, since runs that never end are given time to end. */
const stop = Effect.fnUntraced(function* (fibers: ReadonlyArray<Fiber.Fiber<unknown, unknown>>) {
  const stopped = yield* Effect.forkChild(Fiber.interruptAll(fibers))
  yield* TestClock.adjust("1 minute")
  yield* Fiber.join(stopped)
})

/** Runs a worker with these options beside the rest of a test. */
const working = <A, E>(
  options: Partial<RunWorker.Options>,
  test: Effect.Effect<A, E, Kernel.Kernel | RunStore.RunStore>
) =>
  Effect.gen(function* () {
    started.length = 0
    const work = RunWorker.run({
      agents: [agent],
      partiesOf,
      pollInterval: "1 hour",
      onRun: () => Effect.void,
      ...options
    })
    const worker = yield* Effect.forkChild(work)
    yield* TestClock.adjust("1 millis")
    return yield* Effect.ensuring(test, stop([worker]))
  }).pipe(Effect.provide(Layer.unwrap(services)))

describe("a worker", () => {
  it.effect("gives one caller half of its places, so that others find one while its runs never end", () =>
    working(
      { concurrency: 8 },
      Effect.gen(function* () {
        yield* submit(numbered("hog", 1_000))
        yield* settled
        assert.deepStrictEqual(started, numbered("hog", 4))
        yield* submit([...numbered("ada", 1), ...numbered("bo", 1), ...numbered("cy", 1), ...numbered("di", 1)])
        yield* settled
        assert.deepStrictEqual(started.slice(4), ["ada/0", "bo/0", "cy/0", "di/0"])
      })
    )
  )

  it.effect("leaves a place for the next caller, although three others hold theirs for ever", () =>
    working(
      { concurrency: 12 },
      Effect.gen(function* () {
        for (let hog = 0; hog < 3; hog++) yield* submit(numbered(`hog-${hog}`, 20))
        yield* settled
        assert.isAtMost(started.length, 11)
        yield* submit(numbered("ada", 3))
        yield* seconds(4)
        assert.deepStrictEqual(started.slice(-3), numbered("ada", 3))
      })
    )
  )

  it.effect("lets callers take turns, and within a tenant its callers", () =>
    working(
      { concurrency: 1 },
      Effect.gen(function* () {
        yield* submit([
          ...numbered("acme/ada", 3),
          ...numbered("acme/bo", 2),
          ...numbered("globex/cy", 2),
          ...numbered("globex/di", 1)
        ])
        yield* seconds(9)
        assert.deepStrictEqual(started, [
          "acme/ada/0",
          "acme/ada/1",
          "globex/cy/0",
          "acme/bo/0",
          "globex/di/0",
          "acme/ada/2",
          "globex/cy/1",
          "acme/bo/1"
        ])
      })
    )
  )

  it.effect("gives one caller all places if its share is 1, and refuses a share that gives nobody a place", () =>
    Effect.gen(function* () {
      yield* working(
        { concurrency: 8, share: 1 },
        Effect.gen(function* () {
          yield* submit(numbered("hog", 20))
          yield* TestClock.adjust("1 minute")
          assert.lengthOf(started, 8)
        })
      )
      for (const share of [0, -1, 1.1, Number.NaN]) {
        const refused = Effect.flip(RunWorker.runOnce({ agents: [agent], share }))
        const error = yield* Effect.provide(refused, Layer.unwrap(services))
        assert.strictEqual(error.path, "share")
      }
    })
  )

  it.effect("finds the runs that it passed over in the order of their turns, and those beyond by polling", () =>
    working(
      { concurrency: 4, pollInterval: "5 seconds" },
      Effect.gen(function* () {
        yield* submit([...numbered("ada", 150), ...numbered("bo", 2)])
        yield* seconds(2)
        assert.includeMembers(started, numbered("bo", 2))
        yield* seconds(90)
        assert.sameMembers(started, [...numbered("ada", 150), ...numbered("bo", 2)])
      })
    )
  )
})

describe("a driver", () => {
  it.effect("lets runs wait for their turn, and forgets one that is interrupted while it waits", () =>
    Effect.gen(function* () {
      started.length = 0
      yield* submit([...numbered("hog", 3), ...numbered("ada", 2), ...numbered("bo", 2)])
      const driver = yield* RunDriver.make({ agents: [agent], partiesOf, concurrency: 4, onRun: () => Effect.void })
      const drive = (runId: string) =>
        Effect.forkChild(driver.drive(runId, { isLost: () => false }), { startImmediately: true })
      const hanging = yield* Effect.forEach(numbered("hog", 2), drive)
      const waiting = yield* drive("hog/2")
      const others = yield* Effect.forEach(["ada/0", "ada/1", "bo/0", "bo/1"], drive)
      yield* settled
      assert.deepStrictEqual(started, ["hog/0", "hog/1", "ada/0", "bo/0"])
      yield* Fiber.interrupt(waiting)
      yield* seconds(3)
      yield* Fiber.joinAll(others)
      assert.sameMembers(started.slice(4), ["ada/1", "bo/1"])
      const store = yield* RunStore.RunStore
      const { status } = Option.getOrThrow(yield* store.head("hog/2"))
      assert.strictEqual(status.type, "queued")
      yield* stop(hanging)
    }).pipe(Effect.provide(Layer.unwrap(services)))
  )
})
