import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { Agent, Kernel, MediaStore, ProtocolRegistry, RunStore, SkillRegistry } from "kernai"
import { MockProvider } from "kernai/testing"
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { folder } from "../../support/folder.ts"
import { keep } from "./evidence.ts"

const agent = Agent.make({ name: "clerk", instructions: "", model: "scripted" })

const layer = Kernel.layer.pipe(
  Layer.provide([SkillRegistry.layer(), ProtocolRegistry.layer(), MediaStore.layerMemory, MockProvider.layer("done")]),
  Layer.provideMerge(RunStore.layerMemory)
)

/** A folder with the logs of two processes. */
const place = Effect.tap(folder, (place) =>
  Effect.sync(() => {
    writeFileSync(join(place, "a.0.log"), "began\n")
    writeFileSync(join(place, "b.1.log"), "began\n")
  })
)

const sources = { ends: [], faults: ["12:00 kills a.0"], ledger: ["pay1 call-0 b.1 12:01", "pay11 call-0 a.0 12:02"] }

describe("the evidence of the chaos", () => {
  it.effect("holds the journal, the calls and the processes of a run with a finding, and the faults", () =>
    Effect.gen(function* () {
      const logs = yield* place
      yield* Kernel.run(agent, "go", { runId: "pay1" })
      const store = yield* RunStore.RunStore
      const journal = yield* Stream.runCollect(store.read("pay1"))
      const kept = join(logs, "kept")
      const findings = ["nothing_lost: pay1 paid 3 times"]
      yield* Effect.promise(() => keep(kept, { ...sources, findings, logs, journalOf: () => Promise.resolve(journal) }))
      const textOf = (name: string) => readFileSync(join(kept, name), "utf8")
      assert.deepStrictEqual(readdirSync(kept).toSorted(), [
        "b.1.log",
        "ends",
        "faults",
        "findings",
        "pay1.jsonl",
        "pay1.ledger"
      ])
      assert.strictEqual(textOf("pay1.ledger"), "pay1 call-0 b.1 12:01\n")
      assert.lengthOf(textOf("pay1.jsonl").trimEnd().split("\n"), journal.length)
      assert.strictEqual(textOf("faults"), "12:00 kills a.0\n")
      assert.strictEqual(textOf("findings"), `${findings[0]}\n`)
    }).pipe(Effect.provide(layer))
  )

  it.effect("is bounded, and is not written without a finding", () =>
    Effect.gen(function* () {
      const logs = yield* place
      const kept = join(logs, "kept")
      const given = { ...sources, logs, journalOf: () => Promise.resolve([]) }
      yield* Effect.promise(() => keep(kept, { ...given, findings: [] }))
      assert.isFalse(existsSync(kept))
      const findings = Array.from({ length: 1_000 }, (_, number) => `stuck: pay${number} is running`)
      yield* Effect.promise(() => keep(kept, { ...given, findings }))
      assert.lengthOf(
        readdirSync(kept).filter((name) => name.endsWith(".jsonl")),
        20
      )
    })
  )
})
