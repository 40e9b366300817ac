/**
 * The checks of run stores as tests, and stores that share their runs.
 */
import { assert, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer, Option, Queue, Schema, Scope, Stream } from "effect"
import { Kernel, RunStore, type RunState } from "kernai"
import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { RunStoreSuite } from "../../src/testing/index.ts"
import * as Journal from "../../src/testing/internal/sampleJournal.ts"
import { put } from "../../src/testing/internal/sampleJournal.ts"
import { folder } from "./folder.ts"
import { type Kind, layerOf } from "./runStoreRacer.ts"

export { loads, put, putAll, resume, tagOf } from "../../src/testing/internal/sampleJournal.ts"

/** A store of its own each time; what the layer points at is shared. */
export const open = <E, R>(layer: Layer.Layer<RunStore.RunStore, E, R>) =>
  Effect.map(Layer.build(Layer.fresh(layer)), (context) => Context.get(context, RunStore.RunStore))

/** One test for each check but those that are left out by their names. */
export const suite = <E>(
  store: Effect.Effect<RunStore.RunStoreShape, E, Scope.Scope>,
  left: ReadonlyArray<string> = []
): void => {
  const checks = RunStoreSuite.checks(store)
  const names = checks.map(({ name }) => name)
  assert.includeMembers(names, [...left])
  for (const { name, run } of checks) if (!left.includes(name)) it.effect(name, () => run, 30_000)
}

/** Follows a run over the end of its store's layer. */
export const endsWithLayer = Effect.fnUntraced(function* <E>(layer: Layer.Layer<RunStore.RunStore, E>) {
  const its = yield* Scope.make()
  const store = Context.get(yield* Layer.buildWithScope(layer, its), RunStore.RunStore)
  yield* put(store, [Journal.begin("run").last()])
  const heard = yield* Queue.unbounded<RunState.RunRecord>()
  const following = yield* Effect.forkChild(
    Stream.runForEach(store.tail("run"), (record) => Queue.offer(heard, record))
  )
  yield* Queue.take(heard)
  yield* Scope.close(its, Exit.void)
  yield* Fiber.join(following)
  assert.lengthOf(yield* Stream.runCollect(store.tail("run")), 0)
})

/** Reads and forks a run whose record after a revision is damaged. */
export const soundUpTo = Effect.fnUntraced(function* (store: RunStore.RunStoreShape, runId: string, revision: number) {
  const seen: Array<number> = []
  const see = (record: RunState.RunRecord) => Effect.sync(() => seen.push(record.revision))
  const sound = Array.from({ length: revision }, (_, index) => index + 1)
  for (const read of [store.read(runId), store.tail(runId)]) {
    seen.length = 0
    const error = yield* Effect.flip(Stream.runForEach(read, see))
    assert.strictEqual(error.reason, "corrupt")
    assert.deepStrictEqual(seen, sound)
  }
  const fork = (at: number) =>
    Effect.provideService(Kernel.fork(runId, { revision: at, runId: `fork${at}` }), RunStore.RunStore, store)
  const state = Option.getOrThrow(yield* store.load(yield* fork(revision)))
  assert.deepStrictEqual(state.forkedFrom, { runId, revision })
  assert.strictEqual((yield* Effect.flip(fork(revision + 1)))._tag, "StoreError")
})

/** Lets two processes push one run on against each other, and checks what they were told against the journal. */
export const race = Effect.fnUntraced(function* (kind: Kind) {
  const directory = yield* folder
  const script = fileURLToPath(new URL("runStoreRacer.ts", import.meta.url))
  const racer = (workerId: string) =>
    Effect.map(
      Effect.tryPromise((signal) =>
        promisify(execFile)(process.execPath, [script, kind, directory, workerId], { signal })
      ),
      ({ stdout }): ReadonlyArray<readonly [number, string]> =>
        (JSON.parse(stdout) as ReadonlyArray<number>).map((revision) => [revision, workerId])
    )
  const won = yield* Effect.all([racer("a"), racer("b")], { concurrency: "unbounded" })
  const store = yield* open(layerOf(kind, directory))
  const stored = (yield* Stream.runCollect(store.read("race"))).map(
    ({ revision, workerId }): readonly [number, string] => [revision, workerId]
  )
  assert.deepStrictEqual(
    won.flat().toSorted(([a], [b]) => a - b),
    stored
  )
  assert.isAtLeast(stored.length, 60)
})

/** The metadata of runs that wait: two with deadlines, the later one first, and others that hold none. */
export const awaiting: ReadonlyArray<Schema.Json> = [
  { questions: [{ callId: "a", answerBy: 90.5 }, "other", { answerBy: "1" }] },
  { questions: [{ callId: "b" }, { callId: "c", answerBy: 20 }, { answerBy: 70 }] },
  { questions: [{ callId: "d" }] },
  { questions: { answerBy: 1 } },
  ["questions"],
  null
]
