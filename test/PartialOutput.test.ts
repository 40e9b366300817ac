import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema, Stream } from "effect"
import { Agent, Kernel, PartialOutput, type Provider, Skill } from "kernai"
import { MockProvider } from "kernai/testing"
import { PartialJson } from "../src/internal/words/partialJson.ts"
import { kernel } from "./support/kernel.ts"
import { cases } from "./support/property.ts"

/** Returns all partial values of a text that arrives in these chunks. */
const told = (...pieces: ReadonlyArray<string>) => {
  const json = new PartialJson()
  const values = pieces.flatMap((piece) => {
    const value = json.push(piece)
    return value === undefined ? [] : [value]
  })
  const last = json.end()
  return last === undefined ? values : [...values, last]
}

const Recipe = Schema.Struct({ title: Schema.String, steps: Schema.Array(Schema.String) })

describe("PartialJson", () => {
  it("returns whole members, open lists and partial strings", () => {
    assert.deepStrictEqual(told('{"title":"So', 'up","serves":4', ',"steps":["cu', 't","co', 'ok"]}'), [
      { title: "So" },
      { title: "Soup" },
      { title: "Soup", serves: 4, steps: ["cu"] },
      { title: "Soup", serves: 4, steps: ["cut", "co"] },
      { title: "Soup", serves: 4, steps: ["cut", "cook"] }
    ])
  })

  it("omits a key, number or literal that may continue, and an incomplete escape", () => {
    assert.deepStrictEqual(told('{"a', '":1', "2", ',"b":tr', "ue}"), [{}, { a: 12 }, { a: 12, b: true }])
    assert.deepStrictEqual(told('["x\\', "n", "\\u00", 'e9"]'), [["x"], ["x\n"], ["x\né"]])
    assert.deepStrictEqual(told("[1 ", ",2]"), [[1], [1, 2]])
    assert.deepStrictEqual(told("\n ", '{"a"', ":1}"), [{}, { a: 1 }])
    assert.deepStrictEqual(told("12", "3\n"), [123])
    assert.deepStrictEqual(told('{"a":1,"b" ', ":2}"), [{ a: 1 }, { a: 1, b: 2 }])
    assert.deepStrictEqual(told('["\\nabcde', '"]'), [["\nabcde"]])
    assert.deepStrictEqual(told('["a\\n', '"]'), [["a\n"]])
    assert.deepStrictEqual(told('["\\\\', '\\"', '"]'), [["\\"], ['\\"']])
    assert.deepStrictEqual(told('["a\ud83d', '\ude00"]'), [["a"], ["a\u{1f600}"]])
    assert.deepStrictEqual(told('["a\\ud83d', "\\ude", '00"]'), [["a"], ["a\u{1f600}"]])
    assert.deepStrictEqual(told('["\\\\ud83d', '"]'), [["\\ud83d"]])
  })

  it("returns nothing for prose or for text that turns out not to be JSON", () => {
    for (const text of ["Here it is: {}", "{a:1}", "[1,,2]", "{]", "nothing"]) {
      assert.deepStrictEqual(
        told(...text).filter((value) => JSON.stringify(value).length > 4),
        [],
        text
      )
    }
  })

  it("reads each character once, so a long text in small chunks takes linear time (R-21)", () => {
    const count = 100_000
    const json = new PartialJson()
    json.push('{"a":"')
    // Looking at all of it each time took a minute, which no test is given.
    for (let index = 0; index < count; index++) json.push("word")
    assert.deepStrictEqual(json.end(), { a: "word".repeat(count) })
  })

  it.prop(
    "ends with the written value, for any chunking",
    [Schema.Json, Schema.Array(Schema.Natural)],
    ([value, cuts]) => {
      const text = JSON.stringify(value)
      const places = [...new Set(cuts.map((cut) => cut % (text.length + 1)))].toSorted((a, b) => a - b)
      const pieces = [0, ...places].map((place, index) => text.slice(place, places[index] ?? text.length))
      const values = told(...pieces)
      // A bare number or literal at the root ends with the text, so it is never known to be complete before.
      const isOpen = typeof value === "object" && value !== null
      if (isOpen || typeof value === "string") assert.deepStrictEqual(values.at(-1), JSON.parse(text))
      for (const partial of values) assert.isTrue(JSON.stringify(partial).length <= text.length)
    },
    cases()
  )
})

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
