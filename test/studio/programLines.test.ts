/** A program of a model as the page draws it. */
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Schema, Stream } from "effect"
import { Kernel, RunStore, Skill } from "kernai"
import { Code } from "kernai/code"
import { Journal } from "../../src/studio/page/journal.ts"
import { programOf } from "../../src/studio/page/programLines.ts"
import { kernel } from "../support/kernel.ts"

const look = Skill.make("look", {
  description: "Looks at a row",
  input: Schema.Struct({ row: Schema.Finite }),
  effects: "read",
  execute: ({ row }) => (row === 3 ? Effect.fail("row 3 is taken") : Effect.succeed(`row ${row} is free`))
})

const source = `const rows = await Promise.all([1, 2].map((row) => look({ row })))
const none = await look({ row: 3 }).catch(() => "")
throw new Error(rows.join())`

it.effect("each call of a program is at the line that made it at every revision, and so is its error", () =>
  Effect.gen(function* () {
    const code = Code.agent({ skills: [look] })
    yield* Effect.flip(Kernel.run(code, JSON.stringify({ code: `\`\`\`ts\n${source}\n\`\`\`` }), { runId: "run" }))
    const journal = new Journal()
    const store = yield* RunStore.RunStore
    journal.add(JSON.parse(JSON.stringify(Array.from(yield* Stream.runCollect(store.read("run"))))))
    const at = (revision: number) => {
      const state = journal.stateAt(revision)
      return state === undefined ? undefined : programOf(state)
    }
    const last = at(journal.revision)
    assert.strictEqual(last?.source, source)
    const drawn = Array.from(last?.calls ?? [], ([line, made]) => [
      line,
      ...made.map(({ call, result }) => [call.input, result?.error?.message ?? result?.output?.[0]])
    ])
    assert.deepStrictEqual(drawn, [
      [1, ...[1, 2].map((row) => [{ row }, { type: "text", text: `row ${row} is free` }])],
      [2, [{ row: 3 }, "row 3 is taken"]]
    ])
    assert.strictEqual(last?.failure?.line, 3)
    assert.include(last?.failure?.text, "row 1 is free,row 2 is free")
    const lines = Array.from({ length: journal.revision }, (_, index) => Array.from(at(index + 1)?.calls.keys() ?? []))
    assert.deepStrictEqual([...new Set(lines.map(String))], ["", "1", "1,2"])
  }).pipe(Effect.provide(Layer.merge(kernel(), Code.layerQuickJs())))
)
