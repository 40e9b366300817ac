import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Schema } from "effect"
import { Agent, Kernel, Skill, SkillRegistry } from "kernai"
import { CrashMatrix, MockProvider } from "kernai/testing"
import { kernel } from "../support/kernel.ts"
import { call, native, voices } from "../support/team.ts"

class CurrentUser extends Context.Service<CurrentUser, { readonly name: string }>()("test/CurrentUser") {}

const greet = Skill.make("greet", {
  description: "Greets the user",
  input: Schema.Struct({}),
  effects: "read",
  execute: () => Effect.map(CurrentUser, ({ name }) => `hello ${name}`)
})

const ada = Effect.provideService(CurrentUser, { name: "Ada" })

describe("a skill given to an agent as a value", () => {
  it.effect("is found without being registered, with the services of its run", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ instructions: "", model: "m", dialect: "tools", skills: [greet] })
      const { provider } = voices({ m: [call("greet"), "done"] })
      const result = yield* ada(Kernel.run(agent, "go", { provider }))
      assert.deepInclude(result.calls[0], { name: "greet", isError: false })
      assert.include(JSON.stringify(result.messages), "hello Ada")
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("is shown to the model beside those that are listed by name, in the order of the list", () =>
    Effect.gen(function* () {
      const own = Skill.make("own", { description: "", input: Schema.Struct({}), execute: () => Effect.succeed(1) })
      const shared = Skill.make("shared", {
        description: "",
        input: Schema.Struct({}),
        execute: () => Effect.succeed(2)
      })
      const agent = Agent.make({ instructions: "", model: "m", dialect: "tools", skills: [own, "shared", greet] })
      const { provider, requests } = voices({ m: ["done"] })
      yield* ada(Kernel.run(agent, "go", { provider })).pipe(Effect.provide(kernel(shared)))
      assert.deepStrictEqual(
        requests[0]?.tools?.map(({ name }) => name),
        ["own", "shared", "greet"]
      )
    })
  )

  it.effect("is not available to the agents that call its agent or are called by it", () =>
    Effect.gen(function* () {
      const helper = Agent.make({
        name: "helper",
        instructions: "",
        model: "helper",
        dialect: "tools",
        skills: [greet]
      })
      const lead = Agent.make({ name: "lead", instructions: "", model: "lead", dialect: "tools", agents: [helper] })
      const { provider } = voices({
        lead: [call("greet"), call("helper", { input: "greet" }), "done"],
        helper: [call("greet"), "greeted"]
      })
      const result = yield* ada(Kernel.run(lead, "go", { provider }))
      assert.deepStrictEqual(
        result.calls.map(({ isError }) => isError),
        [true, false]
      )
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("runs as registered when a skill of its name is registered too", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ instructions: "", model: "m", dialect: "tools", skills: [greet] })
      const registered = Skill.make("greet", {
        description: "",
        input: Schema.Struct({}),
        execute: () => Effect.succeed("hello from the registry")
      })
      const { provider } = voices({ m: [call("greet"), "done"] })
      const result = yield* ada(Kernel.run(agent, "go", { provider })).pipe(Effect.provide(kernel(registered)))
      assert.include(JSON.stringify(result.messages), "hello from the registry")
    })
  )

  it.live("loses nothing and doubles nothing in a crash matrix", () =>
    Effect.gen(function* () {
      const paid: Array<string> = []
      const pay = Skill.make("pay", {
        description: "",
        input: Schema.Struct({}),
        execute: () => Effect.map(CurrentUser, ({ name }) => (paid.push(name), "paid"))
      })
      const report = yield* CrashMatrix.run(
        {
          agent: Agent.make({ instructions: "", model: "m", dialect: "tools", skills: [pay] }),
          input: "go",
          layer: Layer.mergeAll(
            SkillRegistry.layer(),
            Layer.succeed(CurrentUser, { name: "Ada" }),
            MockProvider.layer({ calls: [{ id: "a", name: "pay", input: {} }] }, "done")
          )
        },
        { ways: ["after"] }
      )
      assert.deepStrictEqual(report.violations, [])
      assert.isAbove(paid.length, 1)
    })
  )
})

it("handoffs may name an agent that is listed as a value", () => {
  assert.strictEqual(Agent.problem(native("lead", { agents: [native("a")], handoffs: ["a"] })), undefined)
})
