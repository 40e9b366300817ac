import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Schema } from "effect"
import { LanguageModel, Tool, Toolkit } from "effect/ai"
import { Agent, Content, Media, Policy, Skill } from "kernai"
import { KernaiLanguageModel, SkillTools } from "kernai/provider"
import { MockProvider } from "kernai/testing"
import { Kernel, MediaStore, ProtocolRegistry, RunStore, SkillRegistry } from "../../src/index.ts"
import { call as asked } from "../support/policy.ts"
import { of } from "../support/kernel.ts"
import { told } from "../support/toolbox.ts"

class Atlas extends Context.Service<Atlas, { readonly capital: (country: string) => string }>()("test/Atlas") {}
const layerAtlas = Layer.succeed(Atlas, { capital: (country) => (country === "Italy" ? "Rome" : "?") })

class Unknown extends Schema.TaggedError<Unknown>()("UnknownCountry", { country: Schema.String }) {
  override get message() {
    return `no country ${this.country}`
  }
}

const capital = Tool.make("capital", {
  description: "The capital of a country",
  parameters: Schema.Struct({ country: Schema.String, since: Schema.DateFromString }),
  success: Schema.Struct({ city: Schema.String, year: Schema.Int }),
  failure: Unknown,
  dependencies: [Atlas]
})
  .annotate(Tool.Readonly, true)
  .annotate(Tool.Destructive, false)
  .annotate(Tool.OpenWorld, false)

const sketch = Tool.make("sketch", {
  description: "Draws",
  success: Schema.String,
  toModelOutput: () => [{ ...textPart("a drawing") }, filePart()]
})

const textPart = (text: string) => ({ ...promptPart, type: "text", text }) as const
const filePart = () =>
  ({ ...promptPart, type: "file", mediaType: "image/png", fileName: undefined, data: new Uint8Array([1]) }) as const
const promptPart = { "~effect/ai/Prompt/Part": "~effect/ai/Prompt/Part", options: {} } as const

const census = Tool.make("census", {
  success: Schema.String,
  failure: Schema.TaggedStruct("TooMany", { people: Schema.BigInt })
})

const toolkit = Toolkit.make(capital, sketch, census)
const handlers = toolkit.toLayer({
  capital: ({ country, since }) =>
    Effect.flatMap(Atlas, (atlas) =>
      atlas.capital(country) === "?"
        ? Effect.fail(new Unknown({ country }))
        : Effect.succeed({ city: atlas.capital(country), year: since.getUTCFullYear() })
    ),
  sketch: () => Effect.succeed("drawn"),
  census: () => Effect.fail({ _tag: "TooMany", people: 8_000_000_000n } as const)
})

const kernel = Kernel.layerNoProvider.pipe(
  Layer.provide([
    SkillRegistry.layer(...SkillTools.fromToolkit(toolkit)).pipe(Layer.provide(handlers), Layer.provide(layerAtlas)),
    ProtocolRegistry.layer(),
    MediaStore.layerMemory,
    RunStore.layerMemory
  ])
)

const agent = Agent.make({ instructions: "", model: "m", skills: "all", dialect: "tools" })
const call = (name: string, input: unknown) => ({ calls: [{ id: "c", name, input }] })

describe("SkillTools.fromToolkit", () => {
  it.effect("runs tools of effect/ai as skills, with their own decoding and services", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make(call("capital", { country: "Italy", since: "1871-02-03" }), "Rome")
      const run = yield* told(agent, "Italy?", { provider })
      assert.strictEqual(run.text, "Rome")
      assert.deepStrictEqual(of(run.events, "skill_result")[0]?.output, { city: "Rome", year: 1871 })
      assert.deepStrictEqual(provider.calls[0]?.tools[0]?.inputSchema["required"], ["country", "since"])
    }).pipe(Effect.provide(kernel))
  )

  it.effect("shows the model declared failures and misfits (AC-14)", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make(
        call("capital", { country: "Atlantis", since: "1871-02-03" }),
        call("capital", { country: 1 }),
        call("census", {}),
        "done"
      )
      const run = yield* told(agent, "?", { provider })
      const results = of(run.events, "tool_call_completed").map((event) => event.result.error)
      assert.deepStrictEqual(results[0], { name: "UnknownCountry", message: "no country Atlantis", recoverable: true })
      assert.strictEqual(results[1]?.name, "InvalidArguments")
      assert.include(results[1]?.message, "country")
      assert.deepStrictEqual(results[2], { name: "TooMany", message: "TooMany", recoverable: true })
    }).pipe(Effect.provide(kernel))
  )

  it.effect("shows the model what a tool marks as shown, media as media", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make(call("sketch", {}), "done")
      const run = yield* told(agent, "draw", { provider })
      const output = of(run.events, "tool_call_completed")[0]?.result.output
      assert.deepStrictEqual(
        output?.map((part) => (part.type === "text" ? part.text : part.type)),
        ["a drawing", "image"]
      )
    }).pipe(Effect.provide(kernel))
  )

  it.effect("marks a file whose text is not base64 as unavailable, instead of showing an empty one", () => {
    const blank = Tool.make("blank", {
      success: Schema.String,
      toModelOutput: () => [{ ...filePart(), data: "no base64!" }]
    })
    const tools = Toolkit.make(blank)
    const skills = SkillRegistry.layer(...SkillTools.fromToolkit(tools)).pipe(
      Layer.provide(tools.toLayer({ blank: () => Effect.succeed("") }))
    )
    return Effect.gen(function* () {
      const provider = MockProvider.make(call("blank", {}), "done")
      const run = yield* told(agent, "draw", { provider })
      const output = of(run.events, "tool_call_completed")[0]?.result.output
      assert.deepStrictEqual(output, [Content.text("[image unavailable: image/png]")])
    }).pipe(
      Effect.provide(
        Kernel.layerNoProvider.pipe(
          Layer.provide([skills, ProtocolRegistry.layer(), MediaStore.layerMemory, RunStore.layerMemory])
        )
      )
    )
  })

  it("reads effects and hints from the annotations (AC-15)", () => {
    const [first, second] = SkillTools.fromToolkit(toolkit)
    assert.strictEqual(first?.effects, "read")
    assert.deepStrictEqual(first?.annotations, {
      readonly: true,
      destructive: false,
      idempotent: false,
      openWorld: false
    })
    assert.strictEqual(second?.effects, "write")
  })
})

describe("SkillTools.policyOf", () => {
  const guarded = Toolkit.make(
    Tool.make("always", { success: Schema.String, needsApproval: true }),
    Tool.make("maybe", {
      parameters: Schema.Struct({ amount: Schema.FiniteFromString }),
      success: Schema.String,
      needsApproval: ({ amount }) => amount > 10
    })
  )
  const ask = (name: string, input: { readonly [key: string]: string }) =>
    Effect.map(
      Effect.flatMap(Policy.current, (policy) => policy!.authorize(asked(name, input))),
      (decision) => decision._tag
    ).pipe(Effect.provide(Policy.layer(SkillTools.policyOf(guarded))))

  it.effect("asks a person if the tool needs approval, and denies calls it cannot check", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* ask("always", {}), "Confirm")
      assert.strictEqual(yield* ask("maybe", { amount: "5" }), "Allowed")
      assert.strictEqual(yield* ask("maybe", { amount: "50" }), "Confirm")
      assert.strictEqual(yield* ask("maybe", { amount: "much" }), "Denied")
      assert.strictEqual(yield* ask("other", {}), "Allowed")
    })
  )
})

describe("SkillTools.toToolkit", () => {
  const lookUp = Skill.make("look_up", {
    description: "Looks up a capital",
    input: Schema.Struct({ country: Schema.String }),
    effects: "read",
    execute: ({ country }, { callId }) =>
      Effect.map(Atlas, (atlas) => ({ city: atlas.capital(country), callId: callId === "" ? "none" : "some" }))
  })
  const paint = Skill.make("paint", {
    description: "Paints",
    input: Schema.Struct({}),
    execute: () =>
      Effect.succeed(Skill.result("painted", { media: Media.fromBytes(new Uint8Array([1, 2]), "image/png") }))
  })
  const broken = Skill.make("broken", {
    description: "Fails",
    input: Schema.Struct({ how: Schema.String }),
    execute: ({ how }) =>
      how === "typed" ? Effect.fail(new Unknown({ country: how })) : Effect.die("sk-secret-12345678")
  })

  it.effect("lets effect/ai run skills, with what they need", () =>
    Effect.gen(function* () {
      const mock = MockProvider.make({ calls: [{ name: "look_up", input: { country: "Italy" } }, { name: "paint" }] })
      const model = yield* KernaiLanguageModel.fromProvider(mock, { model: "m" })
      const response = yield* LanguageModel.generateText({
        prompt: "Italy?",
        toolkit: SkillTools.toToolkit(lookUp, paint)
      }).pipe(Effect.provideService(LanguageModel.LanguageModel, model), Effect.provide(layerAtlas))
      assert.deepStrictEqual(
        response.toolResults.map((result) => result.result),
        [
          '{"city":"Rome","callId":"some"}',
          { text: "painted", media: [{ mediaType: "image/png", data: new Uint8Array([1, 2]) }] }
        ]
      )
      assert.deepStrictEqual(mock.lastCall?.tools[0]?.inputSchema, lookUp.inputSchema)
    })
  )

  it.effect("returns failures as results: a typed one with its message, a bug with a fixed text (W-14)", () =>
    Effect.gen(function* () {
      const mock = MockProvider.make({
        calls: [
          { name: "broken", input: { how: "typed" } },
          { name: "broken", input: { how: "bug" } },
          { name: "broken", input: {} }
        ]
      })
      const model = yield* KernaiLanguageModel.fromProvider(mock, { model: "m" })
      const response = yield* LanguageModel.generateText({ prompt: "?", toolkit: SkillTools.toToolkit(broken) }).pipe(
        Effect.provideService(LanguageModel.LanguageModel, model)
      )
      const results: ReadonlyArray<unknown> = response.toolResults.map((result) => result.result)
      assert.deepStrictEqual(results.slice(0, 2), [
        { error: "UnknownCountry", message: "no country typed" },
        { error: "Defect", message: "Skill 'broken' failed unexpectedly" }
      ])
      assert.include(JSON.stringify(results[2]), "Missing required input: how")
      assert.isTrue(response.toolResults.every((result) => result.isFailure))
    })
  )

  it("keeps the skill's effects as annotations (AC-15)", () => {
    const tool = SkillTools.toTool(lookUp)
    assert.isTrue(Context.get(tool.annotations, Tool.Readonly))
    assert.isFalse(Context.get(tool.annotations, Tool.Destructive))
    assert.isTrue(Context.get(tool.annotations, Tool.Idempotent))
  })
})
