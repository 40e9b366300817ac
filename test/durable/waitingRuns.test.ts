/** The bound on the runs of a caller that wait for a worker. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import { Kernel, KernelError, Limits, MediaStore, RunStore } from "kernai"
import { Access, HttpKernel } from "kernai/http"
import { agent } from "../support/clerk.ts"
import { process } from "../support/worker.ts"

const counting = Effect.map(RunStore.makeMemory, (memory) => {
  const lists: Array<RunStore.RunFilter | undefined> = []
  const store: RunStore.RunStoreShape = {
    ...memory,
    list: (filter) => Effect.suspend(() => (lists.push(filter), memory.list(filter)))
  }
  return { lists, store }
})

const submit = (id: string, runId: string) => Kernel.submit(agent, "pay eva", { runId, caller: { id } })

const three = Limits.layer({ waitingRuns: 3 })

describe("a caller with too many waiting runs", () => {
  it.effect("cannot submit another one, while other callers can, and nothing of it is stored", () =>
    Effect.gen(function* () {
      const { lists, store } = yield* counting
      yield* Effect.gen(function* () {
        for (const runId of ["a", "b", "c"]) yield* submit("hog", runId)
        assert.lengthOf(lists, 1)
        for (let n = 0; n < 100; n++) {
          const error = yield* Effect.flip(submit("hog", "d"))
          assert.instanceOf(error, KernelError.QueueFull)
          assert.deepInclude({ ...error }, { caller: "hog", limit: 3, retryAt: 5_000 })
        }
        assert.lengthOf(lists, 1)
        assert.isTrue(Option.isNone(yield* store.head("d")))
        yield* submit("ada", "e")
        yield* Kernel.submit(agent, "pay eva", { runId: "f" })
      }).pipe(Effect.provide(Layer.provideMerge(process(store), three)))
    })
  )

  it.effect("can submit again once some of its runs have started, also when another process submitted them", () =>
    Effect.gen(function* () {
      const { store } = yield* counting
      const there = Layer.provideMerge(process(store), three)
      for (const runId of ["a", "b", "c"]) yield* Effect.provide(submit("hog", runId), there)
      yield* Effect.gen(function* () {
        yield* Effect.flip(submit("hog", "d"))
        yield* store.acquire("a", { workerId: "w", lease: "1 minute" })
        yield* TestClock.adjust("5 seconds")
        yield* submit("hog", "d")
        yield* Effect.flip(submit("hog", "e"))
      }).pipe(Effect.provide(Layer.provideMerge(process(store), three)))
    })
  )

  it.effect("exceeds the bound by an eighth at most when another process admits its runs, too", () =>
    Effect.gen(function* () {
      const { lists, store } = yield* counting
      const limits = Limits.layer({ waitingRuns: 200 })
      const submitAll = (name: string) =>
        Effect.gen(function* () {
          for (let n = 0; ; n++) {
            const exit = yield* Effect.exit(submit("hog", `${name}${n}`))
            if (Exit.isFailure(exit)) return n
          }
        })
      yield* Effect.gen(function* () {
        yield* submit("hog", "first")
        const there = yield* Effect.provide(submitAll("there"), Layer.provideMerge(process(store), limits))
        const here = yield* submitAll("here")
        assert.deepStrictEqual([there, here], [199, 24])
        // Most admissions need no count.
        assert.isBelow(lists.length, 20)
      }).pipe(Effect.provide(Layer.provideMerge(process(store), limits)))
    })
  )

  it.effect("reads status 429 over HTTP, with the seconds after which it may try again", () =>
    Effect.gen(function* () {
      const { store } = yield* counting
      const access = Access.bearer(() => Effect.succeed(Option.some({ id: "hog" })))
      const routes = HttpKernel.layer({ agents: [agent], worker: false }).pipe(
        Layer.provide([process(store), access, MediaStore.layerMemory]),
        Layer.provideMerge(three)
      )
      const { dispose, handler } = HttpKernel.toWebHandler(routes)
      const start = () =>
        Effect.promise(() =>
          handler(
            new Request("http://localhost/runs", {
              method: "POST",
              headers: { authorization: "Bearer x", "content-type": "application/json" },
              body: JSON.stringify({ input: "pay eva" })
            })
          )
        )
      for (let n = 0; n < 3; n++) assert.strictEqual((yield* start()).status, 200)
      const refused = yield* start()
      assert.strictEqual(refused.status, 429)
      const seconds = Number(refused.headers.get("retry-after"))
      assert.isTrue(seconds >= 1 && seconds <= 5)
      const problem: unknown = yield* Effect.promise(() => refused.json())
      assert.deepInclude(problem, { type: "urn:kernai:problem:too-many", status: 429, retryAfter: seconds })
      yield* Effect.promise(dispose)
    })
  )
})
