/** What lists of the studio read: facts of runs, and reports of scenarios. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import {
  Agent,
  Kernel,
  KernelError,
  MediaStore,
  ProtocolRegistry,
  Provider,
  RunStore,
  Skill,
  SkillRegistry
} from "kernai"
import { MockProvider } from "kernai/testing"
import * as Matrix from "../../src/studio/internal/matrixReports.ts"
import * as RunFacts from "../../src/studio/internal/runFacts.ts"
import * as StudioData from "../../src/studio/internal/studioData.ts"
import { overviewOf } from "../../src/studio/internal/studioOverview.ts"
import { command, final } from "../support/blocks.ts"

const look = Skill.make("look", {
  description: "Looks",
  effects: "read",
  input: Schema.Struct({ at: Schema.String }),
  execute: ({ at }) => (at === "taken" ? Effect.fail("seat taken") : Effect.succeed("free"))
})

const agent = Agent.make({ name: "clerk", instructions: "", model: "scripted", skills: "all" })

const layer = Kernel.layer.pipe(
  Layer.provide([
    Layer.succeed(
      Provider.Provider,
      MockProvider.make(
        command("look", { at: "taken" }),
        command("look", { at: "1" }),
        final("Done.")
      ).withTokenCounter(() => ({ input: 10, output: 5 }))
    ),
    SkillRegistry.layer(look),
    ProtocolRegistry.layer(),
    MediaStore.layerMemory
  ]),
  Layer.provideMerge(RunStore.layerMemory)
)

describe("RunFacts", () => {
  it.effect(
    "contains the question and the failed calls of a run, and reads a run again only when it has advanced",
    () =>
      Effect.gen(function* () {
        const { runId } = yield* Kernel.run(agent, "A seat, please.")
        const store = yield* RunStore.RunStore
        const reads: Array<number> = []
        const read: RunStore.RunStoreShape["read"] = (id, after = 0) => {
          reads.push(after)
          return store.read(id, after)
        }
        const factsOf = RunFacts.make({ ...store, read })
        const [head] = yield* store.list({})
        if (head === undefined) return assert.fail("no run")
        assert.strictEqual(head.runId, runId)
        const facts = yield* factsOf({ ...head, revision: 12 })
        assert.deepInclude(facts, { words: "A seat, please.", title: "A seat, please.", errors: 1 })
        assert.strictEqual(facts.tokens, 45)
        yield* factsOf({ ...head, revision: head.revision })
        yield* factsOf({ ...head, revision: head.revision })
        assert.deepStrictEqual(reads, [0])
        const records = yield* Stream.runCollect(store.read(runId))
        assert.strictEqual(records.length, head.revision)
      }).pipe(Effect.provide(layer))
  )

  it.effect("are of one tenant, or have all of some labels", () =>
    Effect.gen(function* () {
      const caller = { id: "ada", tenant: "acme", labels: { team: "sales", kind: "test" } }
      yield* Kernel.run(agent, "A seat, please.", { runId: "acme", caller })
      yield* TestClock.adjust("1 second")
      yield* Kernel.run(agent, "A seat, please.", { runId: "other" })
      const store = yield* RunStore.RunStore
      const ids = (query: StudioData.ListQuery) =>
        Effect.map(StudioData.pageOf(store, RunFacts.make(store), query), ({ runs }) => runs.map(({ runId }) => runId))
      assert.deepStrictEqual((yield* ids({})).toSorted(), ["acme", "other"])
      assert.deepStrictEqual(yield* ids({ tenant: "acme", label: ["team=sales", "kind=test"] }), ["acme"])
      assert.deepStrictEqual(yield* ids({ caller: "ada" }), ["acme"])
      assert.deepStrictEqual(yield* ids({ order: "oldest" }), (yield* ids({})).toReversed())
      assert.deepStrictEqual(yield* ids({ label: ["team=sales", "kind=live"] }), [])
      assert.deepStrictEqual(yield* ids({ label: "team" }), [])
    }).pipe(Effect.provide(layer))
  )

  it.effect("counts runs from their lists where the store cannot, by start, agent and status", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.RunStore
      yield* Kernel.run(agent, "A seat, please.")
      yield* TestClock.adjust("1 second")
      yield* Kernel.run(agent, "A seat, please.")
      yield* Kernel.submit(agent, "Another one.")
      const { counts } = yield* overviewOf(store, { from: 0, to: 2_000, slots: 2 })
      assert.deepStrictEqual(
        counts.toSorted((a, b) => a.slot - b.slot || a.status.localeCompare(b.status)),
        [
          { slot: 0, agent: "clerk", status: "completed", count: 1 },
          { slot: 1, agent: "clerk", status: "completed", count: 1 },
          { slot: 1, agent: "clerk", status: "running", count: 1 }
        ]
      )
      assert.deepStrictEqual((yield* overviewOf(store, { from: 2_000, to: 3_000, slots: 1 })).counts, [])
    }).pipe(Effect.provide(layer))
  )

  it.effect("lists a run whose journal cannot be read", () =>
    Effect.gen(function* () {
      yield* Kernel.run(agent, "A seat, please.")
      const store = yield* RunStore.RunStore
      const broken = new KernelError.StoreError({ operation: "read", reason: "corrupt", detail: "a damaged record" })
      const factsOf = RunFacts.make({ ...store, read: () => Stream.fail(broken) })
      const [head] = yield* store.list({})
      if (head === undefined) return assert.fail("no run")
      const words = "(the journal cannot be read)"
      assert.deepStrictEqual(yield* factsOf(head), { words, title: words })
    }).pipe(Effect.provide(layer))
  )
})

const cell = {
  scenario: "greets",
  model: "script/whole",
  status: "ok" as const,
  turns: 1,
  tokens: null,
  reason: null,
  run_id: "run_1",
  duration_ms: 12
}

describe("the reports of scenarios", () => {
  it.effect("are read from a folder, newest first, without files that are not reports", () =>
    Effect.gen(function* () {
      const folder = mkdtempSync(join(tmpdir(), "kernai-"))
      const write = (name: string, value: unknown) => writeFileSync(join(folder, name), JSON.stringify(value))
      write("matrix_20260101_000000.json", { started_at: "2026-01-01T00:00:00.000Z", cells: [cell] })
      write("matrix_20260102_000000.json", { started_at: "2026-01-02T00:00:00.000Z", cells: [] })
      write("matrix_20260103_000000.json", { cells: "none" })
      write("manifest.json", [])
      const reports = yield* Matrix.read(folder)
      rmSync(folder, { recursive: true })
      assert.deepStrictEqual(
        reports.map(({ started_at }) => started_at),
        ["2026-01-02T00:00:00.000Z", "2026-01-01T00:00:00.000Z"]
      )
      assert.deepStrictEqual(reports[1]?.cells, [cell])
      assert.deepStrictEqual(yield* Matrix.read(folder), [])
    })
  )
})
