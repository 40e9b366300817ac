import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { Agent, Chat, ChatHistory, Hooks, Kernel, Policy, type Provider, Skill } from "kernai"
import { kernel } from "../support/kernel.ts"
import { call, lastAsked, model, native, voices } from "../support/team.ts"
import { stored } from "../support/workflow.ts"

const User = Schema.Struct({ userId: Schema.String, since: Schema.Date })
const ada = { userId: "ada", since: new Date("2020-01-01T00:00:00Z") }
const asJson = { userId: "ada", since: "2020-01-01T00:00:00.000Z" }

const whoami = Skill.make("whoami", {
  description: "Tells the user's name and first year",
  input: Schema.Struct({}),
  effects: "read",
  execute: (_, scope) =>
    Effect.map(Agent.contextOf(User, scope), ({ since, userId }) => `${userId} ${since.getUTCFullYear()}`)
})

/** The first message of the first request of a model. */
const instructionsIn = (requests: ReadonlyArray<Provider.Request>, id: string) =>
  JSON.stringify(requests.find((request) => request.model.id === id)?.messages[0])

const desk = Agent.make({
  name: "desk",
  context: User,
  instructions: ({ since, userId }) => `You help ${userId}, here since ${since.getUTCFullYear()}.`,
  model: model("desk"),
  dialect: "tools",
  skills: [whoami]
})

describe("an agent that declares the context of its runs", () => {
  it.effect("stores it encoded, and passes it decoded to instructions, skills, hooks and policies", () => {
    const read: Array<string> = []
    const note = (by: string, scope: { readonly context: Policy.PolicyCall["context"] }) =>
      Effect.map(Agent.contextOf(desk, scope), ({ since }) => {
        read.push(`${by} ${since.getTime()}`)
      })
    return Effect.gen(function* () {
      const { provider, requests } = voices({ desk: [call("whoami"), "Hello."] })
      yield* Kernel.run(desk, "Who am I?", { runId: "run", context: ada, provider })
      assert.deepStrictEqual((yield* stored("run")).context, asJson)
      assert.include(instructionsIn(requests, "desk"), "You help ada, here since 2020.")
      assert.include(lastAsked(requests, "desk"), "ada 2020")
      assert.deepStrictEqual(read, [`hook ${ada.since.getTime()}`, `policy ${ada.since.getTime()}`])
    }).pipe(
      Effect.provide(
        Layer.mergeAll(
          kernel(),
          Hooks.layer({ onRunStarted: (args) => note("hook", args) }),
          Policy.layer((call) => Effect.as(note("policy", call), Policy.allowed))
        )
      )
    )
  })

  it.effect("passes it to the agents it calls, which decode it with their own schema", () =>
    Effect.gen(function* () {
      const clerk = Agent.make({
        name: "clerk",
        context: Schema.Struct({ userId: Schema.String }),
        instructions: ({ userId }) => `You serve ${userId}.`,
        model: model("clerk"),
        dialect: "tools",
        skills: [whoami]
      })
      const lead = Agent.make({
        name: "lead",
        context: User,
        instructions: "You lead.",
        model: model("lead"),
        dialect: "tools",
        agents: [clerk]
      })
      const { provider, requests } = voices({
        lead: [call("clerk", { input: "Who is it?" }), "Ada."],
        clerk: [call("whoami"), "It is Ada."]
      })
      yield* Kernel.run(lead, "Who?", { runId: "run", context: ada, provider })
      assert.include(instructionsIn(requests, "clerk"), "You serve ada.")
      assert.include(lastAsked(requests, "clerk"), "ada 2020")
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("refuses a context that does not match the schema before it asks a model, and names the field", () =>
    Effect.gen(function* () {
      const { provider, requests } = voices({ desk: ["Hello."] })
      // An agent whose context the compiler does not know is checked by its run.
      const loose: Agent.Agent<unknown, Skill.AnySkill<unknown>, never, unknown> = desk
      const error = yield* Effect.flip(Kernel.run(loose, "?", { context: { userId: 7, since: ada.since }, provider }))
      assert.strictEqual(error._tag, "AgentConfigInvalid")
      assert.include(error.message, "context.userId")
      const none = yield* Effect.flip(Kernel.run(loose, "?", { provider }))
      assert.strictEqual(none._tag, "AgentConfigInvalid")
      const lead = native("lead", { agents: [loose] })
      const above = yield* Effect.flip(Kernel.run(lead, "?", { context: { userId: "ada" }, provider }))
      assert.strictEqual(above._tag, "AgentConfigInvalid")
      assert.include(above.message, "desk.context.since")
      assert.deepStrictEqual(requests, [])
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("refuses a context whose schema does not encode to an object", () =>
    Effect.gen(function* () {
      const listed = Agent.make({ context: Schema.Array(Schema.String), instructions: "", model: model("desk") })
      const { provider } = voices({ desk: ["Hello."] })
      const error = yield* Effect.flip(Kernel.run(listed, "?", { context: ["a"], provider }))
      assert.strictEqual(error._tag, "AgentConfigInvalid")
      assert.include(error.message, "does not encode to an object")
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("resumes with the stored context, and refuses a stored one that does not match the schema", () =>
    Effect.gen(function* () {
      const { provider, requests } = voices({ desk: [call("whoami"), "Hello."] })
      yield* Kernel.submit(desk, "Who am I?", { runId: "run", context: ada, provider })
      yield* Kernel.submit(native("desk"), "Who am I?", { runId: "old", context: { userId: "ada" }, provider })
      const error = yield* Effect.flip(Kernel.resume(desk, "old", { provider }))
      assert.strictEqual(error._tag, "AgentConfigInvalid")
      assert.include(error.message, "context.since")
      assert.deepStrictEqual(requests, [])
      // The missing field may be given with the resume.
      yield* Kernel.resume(desk, "old", { provider, context: { since: asJson.since } })
      const result = yield* Kernel.resume(desk, "run", { provider })
      assert.strictEqual(result.text, "Hello.")
      assert.include(lastAsked(requests, "desk"), "ada 2020")
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("keeps it in a chat, also when a message is sent again", () =>
    Effect.gen(function* () {
      const { provider, requests } = voices({ desk: [call("whoami"), "Hello."] })
      yield* Kernel.submit(desk, "Who am I?", { runId: "run", context: ada, provider })
      const bob = { ...ada, userId: "bob" }
      const result = yield* Chat.chat(desk, "Who am I?", { runId: "run", context: bob, provider })
      assert.strictEqual(result.text, "Hello.")
      assert.include(lastAsked(requests, "desk"), "bob 2020")
      yield* Chat.chat(desk, "Again?", { runId: "next", context: ada, provider })
      assert.deepStrictEqual((yield* stored("next")).context, asJson)
    }).pipe(Effect.provide([kernel(), ChatHistory.layerMemory]))
  )

  it.effect(
    "fails when a hook merges a value that does not match the schema, and can be resumed with one that does",
    () =>
      Effect.gen(function* () {
        const { provider } = voices({ desk: ["Hello."] })
        const spoilt = Hooks.layer({ onRunStarted: () => Effect.succeed({ context: { since: "never" } }) })
        const run = Kernel.run(desk, "?", { runId: "run", context: ada, provider })
        const error = yield* Effect.flip(Effect.provide(run, spoilt))
        assert.strictEqual(error._tag, "ExtensionFailed")
        const misfit = yield* Effect.flip(Kernel.resume(desk, "run", { provider }))
        assert.strictEqual(misfit._tag, "AgentConfigInvalid")
        const result = yield* Kernel.resume(desk, "run", { provider, context: { since: asJson.since } })
        assert.strictEqual(result.text, "Hello.")
      }).pipe(Effect.provide(kernel()))
  )
})
