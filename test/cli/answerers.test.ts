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
})
