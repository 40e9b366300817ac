/** Rules about who may answer from the command line. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { join } from "node:path"
import { Agent, Kernel, MediaStore, Policy, ProtocolRegistry, Skill, SkillRegistry } from "kernai"
import { SqlRunStore } from "kernai/sql"
import { MockProvider } from "kernai/testing"
import { command } from "../support/blocks.ts"
import { folder } from "../support/folder.ts"
import { kernai } from "./support.ts"

const pay = Skill.make("pay", {
  description: "Pays",
  input: Schema.Struct({}),
  execute: () => Effect.succeed("paid")
})

describe("kernai runs approve", () => {
  it.live("refuses the one who started the run and those without the role that the question asks for", () =>
    Effect.gen(function* () {
      const file = join(yield* folder, "runs.db")
      const agent = Agent.make({ instructions: "", model: "m", skills: [pay] })
      const provider = MockProvider.make(command("pay", {}))
      const asks = Policy.layer(() => Effect.succeed(Policy.confirm("it costs", { by: { roles: ["finance"] } })))
      const store = Layer.merge(SqlRunStore.layerSqlite(file), MediaStore.layerMemory)
      const services = Kernel.layerNoProvider.pipe(
        Layer.provide([SkillRegistry.layer(pay), ProtocolRegistry.layer()]),
        Layer.provide(store)
      )
      const caller = { id: "the command line" }
      yield* Kernel.run(agent, "Pay.", { provider, runId: "r", caller }).pipe(
        Effect.provide([services, asks]),
        Effect.flip
      )
      const approve = (...flags: ReadonlyArray<string>) =>
        kernai(["runs", "approve", "r", "--store", `sqlite:${file}`, ...flags])
      const own = yield* approve("--role", "finance")
      assert.deepStrictEqual([own.code, own.out], [1, ""])
      assert.include(own.error, "'the command line' may not answer this question")
      assert.strictEqual((yield* approve("--by", "Ada")).code, 1)
      assert.strictEqual((yield* approve("--by", "Ada", "--role", "finance")).code, 0)
    }).pipe(Effect.scoped)
  )

  it.live("gives the result of an external call by --output, and refuses one that does not fit", () =>
    Effect.gen(function* () {
      const file = join(yield* folder, "runs.db")
      const photo = Skill.external("photo", {
        description: "Takes a photo",
        input: Schema.Struct({}),
        output: Schema.Struct({ url: Schema.String })
      })
      const agent = Agent.make({ instructions: "", model: "m", skills: [photo] })
      const provider = MockProvider.make(command("photo", {}))
      const services = Kernel.layerNoProvider.pipe(
        Layer.provide([SkillRegistry.layer(), ProtocolRegistry.layer()]),
        Layer.provide(Layer.merge(SqlRunStore.layerSqlite(file), MediaStore.layerMemory))
      )
      yield* Effect.flip(Effect.provide(Kernel.run(agent, "Go.", { provider, runId: "r" }), services))
      const approve = (output: string) =>
        kernai(["runs", "approve", "r", "--store", `sqlite:${file}`, "--output", output])
      const misfit = yield* approve(`{"url":5}`)
      assert.deepStrictEqual([misfit.code, misfit.out], [1, ""])
      assert.include(misfit.error, "the output does not fit its schema")
      assert.strictEqual((yield* approve(`{"url":"https://a/b.png"}`)).code, 0)
    }).pipe(Effect.scoped)
  )
})
