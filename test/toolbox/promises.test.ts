/** What skills declare, and what hooks choose. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { Agent, Content, Hooks, Kernel, MediaStore, Model, ModelRegistry, Skill } from "kernai"
import { MockProvider } from "kernai/testing"
import { command, final } from "../support/blocks.ts"
import { kernel, of } from "../support/kernel.ts"
import { outputs, told } from "../support/toolbox.ts"
import { plan, play } from "../support/workflow.ts"

const agent = Agent.make({ instructions: "", model: "m", skills: "all" })

describe("a skill that takes a medium", () => {
  const weigh = Skill.make("weigh", {
    description: "Weighs",
    input: Schema.Struct({
      image: MediaStore.Reference,
      others: Schema.optionalKey(Schema.Array(MediaStore.Reference)),
      note: Schema.String
    }),
    execute: () => Effect.succeed("heavy")
  })

  it.effect("shows in /skills that it takes an id, and reports another value", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make(
        command("/skills", ""),
        command("weigh", { image: 1, note: "x" }),
        final("done")
      )
      const run = yield* told(agent, "?", { provider })
      assert.include(outputs(run)[0], "image (media id), others (array<media id>) optional, note (string)")
      const error = of(run.events, "tool_call_completed")[1]?.result.error?.message
      assert.include(error, "Expected image to be media id, got integer.")
    }).pipe(Effect.provide(kernel(weigh)))
  )
})

describe("a skill that declares what it produces", () => {
  const image = Content.image({ data: new Uint8Array([1]), mediaType: "image/png" })
  const audio = Content.audio({ data: new Uint8Array([2]), mediaType: "audio/mpeg" })
  const make = (name: string, produces: Skill.Options["produces"], result: unknown) =>
    Skill.make(name, {
      description: "Makes",
      input: Schema.Struct({}),
      produces,
      execute: () => Effect.succeed(result)
    })

  it.effect("shows it in /skills and in its events, and may return nothing else", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make(
        command("/skills", ""),
        command("paints"),
        command("sings"),
        command("any"),
        final("done")
      )
      const run = yield* told(agent, "?", { provider })
      assert.include(outputs(run)[0], "Produces: image, document")
      assert.deepStrictEqual(
        of(run.events, "skill_execute").map(({ produces }) => produces),
        [["image", "document"], ["image"], undefined]
      )
      assert.deepStrictEqual(
        of(run.events, "tool_call_completed").map(({ result }) => result.error?.message),
        [
          undefined,
          undefined,
          "the skill ran, but its result cannot be used: at '/media', audio is none of what it produces: image",
          undefined
        ]
      )
    }).pipe(
      Effect.provide(
        kernel(
          make("paints", ["image", "document"], ["a picture", image]),
          make("sings", ["image"], audio),
          make("any", undefined, audio)
        )
      )
    )
  )
})

describe("the tasks of a plan", () => {
  it.effect("are listed as done or failed in /tasks", () =>
    Effect.gen(function* () {
      const { events } = yield* play(
        {
          root: [plan(["good", "bad"]), command("/tasks"), final("done")],
          tasks: { good: [final("fine")], bad: [command("/tasks")] }
        },
        { agent: { maxSteps: 3 } }
      )
      const listed = of(events, "builtin_result").findLast(({ depth }) => depth === 0)?.result ?? "{}"
      const { tasks } = Schema.decodeUnknownSync(Schema.fromJsonString(Tasks))(listed)
      assert.deepStrictEqual(
        tasks.map(({ id, status }) => [id, status]),
        [
          ["good", "done"],
          ["bad", "failed"]
        ]
      )
    }).pipe(Effect.provide(kernel()))
  )
})

const Tasks = Schema.Struct({ tasks: Schema.Array(Schema.Struct({ id: Schema.String, status: Schema.String })) })

describe("a hook that chooses a model of another provider", () => {
  const asks = (model: Model.Model) =>
    Hooks.layer({ onTurnPrepared: ({ prepared }) => Effect.succeed({ value: { ...prepared, model } }) })
  const providers = () => {
    const one = MockProvider.make(final("one"))
    const two = MockProvider.make(final("two"))
    return { one: { name: "one", stream: one.stream.bind(one) }, two: { name: "two", stream: two.stream.bind(two) } }
  }

  for (const model of [Model.make("two/large"), { ...Model.make("large"), provider: "two" }]) {
    it.effect(`sends the request to that provider: ${model.provider ?? model.id}`, () =>
      Effect.gen(function* () {
        const { one, two } = providers()
        const registry = ModelRegistry.layer({ one: Effect.succeed(one), two: Effect.succeed(two) })
        const run = Kernel.run({ ...agent, model: "one/small" }, "?")
        const result = yield* Effect.provide(run, [asks(model), registry])
        assert.strictEqual(result.text, "two")
      }).pipe(Effect.provide(kernel()))
    )
  }

  it.effect("fails with a typed error without a registry, instead of asking the wrong vendor", () =>
    Effect.gen(function* () {
      const { one } = providers()
      const run = Kernel.run({ ...agent, model: "small" }, "?", { provider: one })
      const error = yield* Effect.flip(Effect.provide(run, asks({ ...Model.make("large"), provider: "two" })))
      assert.deepInclude(error, { _tag: "ProviderError", reason: "not_configured", provider: "two" })
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("requests a model of the same provider by its own id", () =>
    Effect.gen(function* () {
      const { one, two } = providers()
      const registry = ModelRegistry.layer({ one: Effect.succeed(one), two: Effect.succeed(two) })
      const asked: Array<string> = []
      const watched = {
        ...one,
        stream: (request: Parameters<typeof one.stream>[0]) => {
          asked.push(request.model.id)
          return one.stream(request)
        }
      }
      const run = Kernel.run({ ...agent, model: "small" }, "?", { provider: watched })
      yield* Effect.provide(run, Layer.merge(asks(Model.make("one/large")), registry))
      assert.deepStrictEqual(asked, ["large"])
    }).pipe(Effect.provide(kernel()))
  )
})
