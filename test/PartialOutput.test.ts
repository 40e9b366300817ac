import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema, Stream } from "effect"
import { Agent, Kernel, PartialOutput, type Provider, Skill } from "kernai"
import { MockProvider } from "kernai/testing"
import { kernel } from "./support/kernel.ts"

const Recipe = Schema.Struct({ title: Schema.String, steps: Schema.Array(Schema.String) })

describe("PartialOutput.fromEvents", () => {
  const look = Skill.make("look", { description: "", input: Schema.Struct({}), execute: () => Effect.succeed("{}") })
  const answer = '{"title":"Soup","steps":["cut","cook"]}'

  for (const dialect of ["blocks", "tools"] as const) {
    it.effect(`emits a typed answer while it is written in ${dialect}, beside skill calls, and decodes it once`, () =>
      Effect.gen(function* () {
        const agent = Agent.make({ instructions: "", model: "m", skills: "all", dialect, output: Recipe })
        const [act, say] =
          dialect === "blocks"
            ? ['<block type="command" name="look">{"title":"no"}</block>', `<block type="final">${answer}</block>`]
            : [{ calls: [{ name: "look" }] }, answer]
        const mock = MockProvider.make(act, say).withChunking(4)
        // Each piece in a read of its own, as over a network.
        const provider = {
          name: "mock",
          stream: (request: Provider.Request) => Stream.rechunk(mock.stream(request), 1)
        }
        let output: typeof Recipe.Type | undefined
        const seen = yield* Kernel.stream(agent, "?", { provider }).pipe(
          Stream.tap((event) =>
            Effect.sync(() => {
              if (event.type === "run_completed") output = event.result?.output
            })
          ),
          PartialOutput.fromEvents,
          Stream.runCollect
        )
        assert.isAbove(seen.length, 4)
        assert.deepStrictEqual(seen.at(-1), { title: "Soup", steps: ["cut", "cook"] })
        assert.deepStrictEqual(output, { title: "Soup", steps: ["cut", "cook"] })
        assert.notInclude(JSON.stringify(seen), "no")
      }).pipe(Effect.provide(kernel(look)))
    )
  }

  it.effect("emits the answer of an agent without blocks, and nothing for a sentence before it", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ instructions: "", model: "m", output: Recipe })
      const mock = MockProvider.make('12 eggs and "milk"', answer).withChunking(4)
      const provider = {
        name: "mock",
        stream: (request: Provider.Request) => Stream.rechunk(mock.stream(request), 1)
      }
      const seen = yield* Kernel.stream(agent, "?", { provider }).pipe(PartialOutput.fromEvents, Stream.runCollect)
      assert.isAbove(seen.length, 4)
      assert.deepStrictEqual(seen[0], {})
      assert.deepStrictEqual(seen.at(-1), { title: "Soup", steps: ["cut", "cook"] })
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("emits no sentence that begins with a JSON literal", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ instructions: "", model: "m", output: Recipe })
      for (const sentence of ["null and void", "true it is", "3 eggs"]) {
        const mock = MockProvider.make(sentence, answer)
        const seen = yield* Kernel.stream(agent, "?", { provider: mock }).pipe(
          PartialOutput.fromEvents,
          Stream.runCollect
        )
        assert.deepStrictEqual(seen, [{ title: "Soup", steps: ["cut", "cook"] }], sentence)
      }
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("emits only the answer of a reply written as JSON blocks", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ instructions: "", model: "m", skills: "all", grammar: true, output: Recipe })
      const blocks = (...list: ReadonlyArray<object>) => JSON.stringify({ blocks: list })
      const mock = MockProvider.make(
        blocks({ type: "plan", content: "Look." }, { type: "command", name: "look", content: {} }),
        blocks({ type: "final", content: JSON.parse(answer) })
      ).withChunking(4)
      const provider = {
        name: "mock",
        stream: (request: Provider.Request) => Stream.rechunk(mock.stream(request), 1)
      }
      const seen = yield* Kernel.stream(agent, "?", { provider }).pipe(PartialOutput.fromEvents, Stream.runCollect)
      assert.isAbove(seen.length, 4)
      assert.deepStrictEqual(seen.at(-1), { title: "Soup", steps: ["cut", "cook"] })
      for (const value of seen) assert.notProperty(value, "blocks")
    }).pipe(Effect.provide(kernel(look)))
  )
})
