/** What a process asks its store between the submission of a run and its first turn. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Fiber, Layer, Stream } from "effect"
import { Kernel, RunDriver, RunStore, RunWorker } from "kernai"
import { SqlRunStore } from "kernai/sql"
import { agent } from "../support/clerk.ts"
import { tracer } from "../support/tracer.ts"
import { process, statusOf } from "../support/worker.ts"

/** A store that notes how it is read. */
const noting = (store: RunStore.RunStoreShape, asked: Array<string>): RunStore.RunStoreShape => {
  const note = <A>(word: string, answer: A): A => {
    asked.push(word)
    return answer
  }
  return {
    ...store,
    head: (runId) =>
      note(
        "head",
        Effect.suspend(() => store.head(runId))
      ),
    load: (runId) => note("load", store.load(runId)),
    read: (runId, after) => note("read", store.read(runId, after)),
    tail: (runId, after) => note("tail", store.tail(runId, after))
  }
}

/** What was asked before a run had its first turn. */
const beforeFirstTurn = (store: RunStore.RunStoreShape, asked: ReadonlyArray<string>) => {
  let found: ReadonlyArray<string> | undefined
  const watched: RunStore.RunStoreShape = {
    ...store,
    append: (records, state) => {
      if (records.some(({ events }) => events.some(({ type }) => type === "turn_started"))) found ??= [...asked]
      return store.append(records, state)
    }
  }
  return { watched, found: () => found }
}

const submit = Kernel.submit(agent, "pay eva", { runId: "r" })

describe("a run that was only submitted is started", () => {
  it.effect("by a worker that has read it once, behind the list it was found in", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      yield* Effect.provide(submit, process(store))
      const asked: Array<string> = []
      const { found, watched } = beforeFirstTurn(noting(store, asked), asked)
      yield* Effect.provide(RunWorker.runOnce({ agents: [agent] }), process(watched))
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
      assert.deepStrictEqual(found(), ["load"])
    })
  )

  it.effect("by a driver that has read its head once and its state once", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      yield* Effect.provide(submit, process(store))
      const asked: Array<string> = []
      const { found, watched } = beforeFirstTurn(noting(store, asked), asked)
      const driven = Effect.flatMap(RunDriver.make({ agents: [agent] }), ({ drive }) =>
        drive("r", { isLost: () => false })
      )
      assert.deepStrictEqual(yield* Effect.provide(driven, process(watched)), { _tag: "AtRest" })
      assert.deepStrictEqual(found(), ["head", "load"])
    })
  )
})

describe("a follower", () => {
  it.effect("of a run that waits for its worker reads the head and the journal once", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      yield* Effect.provide(submit, process(store))
      const asked: Array<string> = []
      const followed = Effect.provide(Stream.runHead(Stream.drop(Kernel.follow("r"), 1)), process(noting(store, asked)))
      const follower = yield* Effect.forkChild(followed, { startImmediately: true })
      yield* Effect.repeat(Effect.yieldNow, { times: 200 })
      assert.deepStrictEqual(asked, ["head", "read", "tail"])
      yield* Fiber.interrupt(follower)
    })
  )

  it.effect("who has all records of a run that waits does not read its journal again", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      yield* Effect.provide(submit, process(store))
      const asked: Array<string> = []
      const followed = Effect.provide(Stream.runDrain(Kernel.follow("r", { after: 1 })), process(noting(store, asked)))
      const follower = yield* Effect.forkChild(followed, { startImmediately: true })
      yield* Effect.repeat(Effect.yieldNow, { times: 200 })
      assert.deepStrictEqual(asked, ["head", "tail"])
      yield* Fiber.interrupt(follower)
    })
  )
})

describe("a store in a database", () => {
  it.effect("loads a run with two statements", () =>
    Effect.gen(function* () {
      const stores = yield* Layer.build(SqlRunStore.layerSqlite({ filename: ":memory:" }))
      const store = Context.get(stores, RunStore.RunStore)
      yield* Effect.provide(submit, process(store))
      const { layer, spans } = tracer()
      yield* Effect.provide(store.load("r"), layer)
      assert.strictEqual(spans.filter(({ attributes }) => attributes.has("db.system.name")).length, 2)
    })
  )
})
