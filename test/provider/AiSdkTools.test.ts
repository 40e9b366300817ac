import { assert, describe, it } from "@effect/vitest"
import { asSchema, jsonSchema, tool, type ToolSet } from "ai"
import { Context, Effect, Layer, Schema, Stream } from "effect"
import { Agent, Kernel, type RunEvent, Skill, SkillRegistry } from "kernai"
import { AiSdkTools } from "kernai/provider"
import { MockProvider } from "kernai/testing"

const city = jsonSchema<{ city: string }>(
  { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  {
    validate: (value) =>
      typeof value === "object" && value !== null && "city" in value && typeof value.city === "string"
        ? { success: true, value: { city: value.city.toUpperCase() } }
        : { success: false, error: new Error("city is missing") }
  }
)

const weather = tool({
  description: "Weather of a city",
  inputSchema: city,
  async *execute({ city }) {
    yield `${city}: asking`
    yield `${city}: 21 degrees`
  }
})
const pay = tool({
  description: "Pays",
  inputSchema: jsonSchema<{ amount: number }>({ type: "object", properties: { amount: { type: "number" } } }),
  needsApproval: async ({ amount }) => amount > 100,
  execute: ({ amount }) => ({ paid: amount }),
  toModelOutput: ({ output }) => ({ type: "text", value: `paid ${output.paid}` })
})
const broken = tool({
  description: "Breaks",
  inputSchema: jsonSchema<{ how?: string }>({ type: "object" }),
  execute: async ({ how }): Promise<string> => {
    if (how === undefined) throw new Error("out of order")
    return how
  }
})

const call = (name: string, input: object) => MockProvider.make({ calls: [{ id: "c", name, input }] }, "done")
const agent = Agent.make({ instructions: "", model: "m", skills: "all", dialect: "tools" })
const Skills = Layer.unwrap(
  Effect.map(AiSdkTools.fromTools({ weather, pay, broken }), (skills) => SkillRegistry.layer(...skills))
)
const live = Kernel.layerWith({ skills: Skills, provider: MockProvider.layer() })

describe("tools of the AI SDK as skills", () => {
  it.effect("run with their checked input, and report all results but the last as preliminary", () =>
    Effect.gen(function* () {
      const events: Array<RunEvent.RunEvent> = []
      const stream = Kernel.stream(agent, "?", { provider: call("weather", { city: "rome" }) })
      yield* Stream.runForEach(stream, (event) => Effect.sync(() => void events.push(event)))
      const outputs = events.flatMap((event) =>
        event.type === "skill_progress" || event.type === "skill_result" ? [event.output] : []
      )
      assert.deepStrictEqual(outputs, ["ROME: asking", "ROME: 21 degrees"])
    }).pipe(Effect.provide(live))
  )

  it.effect("ask a person where they need an approval, and are shown by their own text", () =>
    Effect.gen(function* () {
      const small = call("pay", { amount: 5 })
      yield* Kernel.run(agent, "?", { provider: small })
      assert.include(JSON.stringify(small.lastCall?.messages), "paid 5")
      const provider = call("pay", { amount: 500 })
      yield* Effect.flip(Kernel.run(agent, "?", { provider, runId: "r" }))
      const answers = (yield* Kernel.questions("r")).map(({ callId }) => ({ callId, approved: true }))
      yield* Kernel.resume(agent, "r", { provider, answers })
      assert.include(JSON.stringify(provider.lastCall?.messages), "paid 500")
    }).pipe(Effect.provide(live))
  )

  it.effect("fail with the message of their error, and refuse an input that does not fit", () =>
    Effect.gen(function* () {
      const failed = yield* Kernel.run(agent, "?", { provider: call("broken", {}) })
      const misfit = yield* Kernel.run(agent, "?", { provider: call("weather", {}) })
      const [first, second] = [failed, misfit].map(({ calls }) => String(calls[0]?.error))
      assert.include(first, "out of order")
      assert.include(second, "city is missing")
    }).pipe(Effect.provide(live))
  )

  it.effect("are refused without a JSON Schema", () =>
    Effect.gen(function* () {
      const odd = { inputSchema: { odd: true }, execute: () => 1 }
      const error = yield* Effect.flip(AiSdkTools.fromTools({ odd }))
      assert.include(error.message, "wrap it with asSchema")
    })
  )
})

class Clock extends Context.Service<Clock, { readonly now: string }>()("test/Clock") {}

describe("skills as tools of the AI SDK", () => {
  const tell = Skill.make("tell", {
    description: "Tells the time",
    input: Schema.Struct({ zone: Schema.String }),
    approval: ({ zone }) => zone === "secret",
    execute: ({ zone }, { preliminary }) =>
      Effect.gen(function* () {
        yield* preliminary("looking")
        if (zone === "none") return yield* Effect.fail("no such zone")
        return `${zone}: ${(yield* Clock).now}`
      })
  })

  it.live("stream their results with the services in context, and throw what a model may read", () =>
    Effect.gen(function* () {
      const tools = yield* AiSdkTools.toTools(tell)
      const set: ToolSet = tools
      assert.deepInclude(yield* Effect.promise(async () => asSchema(set["tell"]?.inputSchema).jsonSchema), {
        type: "object"
      })
      const all = (zone: string) =>
        Effect.tryPromise({
          try: async () => {
            const outputs: Array<unknown> = []
            for await (const output of tools["tell"]?.execute({ zone }, { toolCallId: "c" }) ?? []) outputs.push(output)
            return outputs
          },
          catch: String
        })
      assert.deepStrictEqual(yield* all("UTC"), ["looking", "UTC: noon"])
      assert.include(yield* Effect.flip(all("none")), "no such zone")
      const needs = (zone: string) => Effect.promise(async () => tools["tell"]?.needsApproval({ zone }))
      assert.deepStrictEqual([yield* needs("UTC"), yield* needs("secret")], [false, true])
    }).pipe(Effect.provideService(Clock, { now: "noon" }))
  )
})
