import { assert, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { TestClock } from "effect/testing"
import { Kernel, MediaStore, Policy, ProtocolRegistry, Skill, SkillRegistry } from "kernai"
import { Code } from "kernai/code"
import { SqlRunStore } from "kernai/sql"
import { folder } from "../support/folder.ts"

it.effect("a program on SQLite stops for a person at each call, and continues days later in another process", () =>
  Effect.gen(function* () {
    const filename = `${yield* folder}/runs.db`
    const ledger: Array<string> = []
    const act = Skill.make("act", {
      description: "Acts",
      input: Schema.Struct({ what: Schema.String }),
      execute: ({ what }) => Effect.sync(() => ledger.push(what)).pipe(Effect.as(`${what} is done`))
    })
    const code = Code.agent({ skills: [act] })
    const source = `
      const began = [Date.now(), Math.random()].join()
      const results = []
      for (const what of ["order", "pay", "ship"]) results.push(await act({ what }))
      return { results, isSame: began.startsWith("0,") && began.length > 3, began }`
    /** What a process has: a kernel over the file, and an interpreter. */
    const process = <A, E>(effect: Effect.Effect<A, E, Layer.Success<typeof layer>>) => Effect.provide(effect, layer)
    const layer = Layer.mergeAll(
      Layer.provideMerge(
        Kernel.layerNoProvider,
        Layer.mergeAll(
          SkillRegistry.layer(),
          ProtocolRegistry.layer(),
          MediaStore.layerMemory,
          SqlRunStore.layerSqlite(filename),
          Policy.layer(() => Effect.succeed(Policy.confirm("really?")))
        )
      ),
      Code.layerQuickJs()
    ).pipe(Layer.orDie)

    const input = JSON.stringify({ code: source })
    const asked = yield* Effect.flip(process(Kernel.run(code, input, { runId: "run" })))
    assert.strictEqual(asked._tag, "RunPaused")
    for (const [index, what] of ["order", "pay", "ship"].entries()) {
      yield* TestClock.adjust("3 days")
      const answered = yield* process(
        Effect.gen(function* () {
          const [question] = yield* Kernel.questions("run")
          assert.deepStrictEqual(question?.input, { what })
          const answers = [{ callId: question?.callId ?? "", approved: true }]
          return yield* Effect.result(Kernel.resume(code, "run", { answers }))
        })
      )
      assert.strictEqual(answered._tag, index === 2 ? "Success" : "Failure")
      if (answered._tag === "Success") {
        const results = ["order", "pay", "ship"].map((what) => `${what} is done`)
        assert.deepInclude(answered.success.output.result, { results, isSame: true })
      }
    }
    assert.deepStrictEqual(ledger, ["order", "pay", "ship"])
  }).pipe(Effect.scoped)
)
