import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Schema } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Content, MediaStore, Skill } from "kernai"
import { MockProvider } from "kernai/testing"
import { command, final } from "../support/blocks.ts"
import { kernel, of } from "../support/kernel.ts"
import { outputs, told } from "../support/toolbox.ts"

const agent = Agent.make({ instructions: "", model: "m", skills: "all", dialect: "tools", maxSteps: 60 })

describe("a native call that does not fit its skill", () => {
  it.effect("is answered with how to call it natively, not in a block (BP-87)", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make({ calls: [{ name: "find", input: {} }] }, "done")
      const run = yield* told(agent, "?", { provider })
      const error = of(run.events, "tool_call_completed")[0]?.result.error
      assert.strictEqual(error?.name, "InvalidArguments")
      assert.isTrue(error?.message.endsWith(`Usage:           {"name": <string>}`))
    }).pipe(
      Effect.provide(
        kernel(
          Skill.make("find", {
            description: "Finds somebody",
            input: Schema.Struct({ name: Schema.String }),
            execute: () => Effect.succeed("found")
          })
        )
      )
    )
  )
})

describe("a medium that a skill returns", () => {
  const paint = Skill.make("paint", {
    description: "Paints",
    input: Schema.Struct({}),
    effects: "read",
    execute: () => Effect.succeed(Content.image({ data: new Uint8Array([1, 2, 3]), mediaType: "image/png" }))
  })
  const weigh = Skill.make("weigh", {
    description: "Weighs a picture",
    input: Schema.Struct({ image: MediaStore.Reference }),
    effects: "read",
    execute: ({ image }) =>
      MediaStore.MediaStore.use((store) => Effect.map(store.bytes(image.id), (bytes) => `${bytes.length} bytes`))
  })
  const textOf = (part: Content.Content): string =>
    part.type === "text" ? part.text : part.type === "tool_result" ? part.content.map(textOf).join("") : ""

  for (const dialect of ["blocks", "tools"] as const) {
    it.effect(`is shown to the model in ${dialect} with its id, which another skill accepts (W-21)`, () =>
      Effect.gen(function* () {
        const call = (name: string, params: object) =>
          dialect === "tools" ? { calls: [{ name, input: params }] } : command(name, params)
        const provider = MockProvider.make().onCall(({ messages }, turn) => {
          const [id = "nobody knows"] =
            /media_[0-9a-f]{12}/.exec(messages.flatMap(({ content }) => content.map(textOf)).join("")) ?? []
          return turn === 0 ? call("paint", {}) : turn === 1 ? call("weigh", { image: id }) : final("done")
        })
        const run = yield* told(Agent.make({ instructions: "", model: "m", skills: "all", dialect }), "?", { provider })
        assert.strictEqual(outputs(run)[1], "3 bytes")
      }).pipe(Effect.provide(kernel(paint, weigh)))
    )
  }
})

describe("the facts of a result", () => {
  const weigh = Skill.make("weigh", {
    description: "Weighs a letter",
    input: Schema.Struct({}),
    execute: () => Effect.as(Effect.sleep("3 seconds"), Skill.result("heavy", { metadata: { grams: 700 } }))
  })

  it.effect("and its duration reach the host, and no model (BP-75)", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make({ calls: [{ name: "weigh" }] }, "done")
      yield* TestClock.adjust("1 hour")
      const running = yield* Effect.forkChild(told(agent, "?", { provider }))
      yield* TestClock.adjust("3 seconds")
      const { events } = yield* Fiber.join(running)
      for (const facts of [of(events, "skill_result")[0], of(events, "tool_call_completed")[0]?.result]) {
        assert.deepStrictEqual([facts?.durationMs, facts?.metadata], [3_000, { grams: 700 }])
      }
      assert.include(JSON.stringify(provider.lastCall?.messages), "heavy")
      assert.notInclude(JSON.stringify(provider.lastCall?.messages), "700")
    }).pipe(Effect.provide(kernel(weigh)))
  )
})
