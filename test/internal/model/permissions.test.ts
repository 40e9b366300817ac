/** How a model is asked: its dialect, and the skills that its prompt shows. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Agent, Kernel, Limits, Message, Model, type Provider, Skill } from "kernai"
import { MockProvider } from "kernai/testing"
import { kernel } from "../../support/kernel.ts"
import { manySkills, wishes } from "../../support/manySkills.ts"
import { call } from "../../support/team.ts"
import { times } from "../../support/longRun.ts"

const weather = Skill.make("weather", {
  description: "Reports the weather.",
  input: Schema.Struct({ city: Schema.String }),
  effects: "read",
  execute: ({ city }) => Effect.succeed(`sunny in ${city}`)
})

const final = `<block type="final">done</block>`
const ofBlocks = Model.make("small", { dialect: "blocks" })
const ofTools = Model.make("large", { dialect: "tools" })

const auto = (model: Model.Model | string, skills: Agent.Options<never>["skills"] = "all") =>
  Agent.make({ instructions: "You test.", model, skills, dialect: "auto" })

/** The bytes that a request brings to a vendor, as JSON. */
const bytesOf = ({ messages, tools }: Provider.Request): number =>
  new TextEncoder().encode(JSON.stringify({ messages, tools })).length

const systemOf = (request: Provider.Request | undefined): string => {
  const first = request?.messages[0]
  return first?.role === "system" ? Message.text(first) : ""
}

const resultsOf = (request: Provider.Request | undefined): string =>
  JSON.stringify(request?.messages.slice(2).map(({ content }) => content) ?? [])

const namesOf = (request: Provider.Request | undefined) => request?.tools.map(({ name }) => name) ?? []

describe("the dialect `auto`", () => {
  const cases: ReadonlyArray<readonly [what: string, provider: string, model: Model.Model | string, native: boolean]> =
    [
      ["a model that says tools", "house", ofTools, true],
      ["a model that says blocks, of a vendor with tools", "anthropic", ofBlocks, false],
      ["a model of the catalogue by its name", "anthropic", "claude-sonnet-4-5-20250929", true],
      ["an unknown model of a vendor of the catalogue", "openai", "gpt-99", true],
      ["an unknown model that runs on this machine", "ollama", "tiny", false],
      ["an unknown model of an unknown vendor", "house", "tiny", false]
    ]
  it.effect.each(cases)("asks %s in the dialect the catalogue names for it", ([, provider, model, native]) =>
    Effect.gen(function* () {
      const mock = MockProvider.named(provider, native ? "done" : final)
      yield* Kernel.run(auto(model), "go", { provider: mock })
      assert.deepStrictEqual(namesOf(mock.lastCall), native ? ["weather"] : [])
      assert.strictEqual(systemOf(mock.lastCall).includes("You speak in blocks"), !native)
    }).pipe(Effect.provide(kernel(weather)))
  )

  it.effect("lists few skills in the prompt in blocks, once, instead of the hint to ask for them", () =>
    Effect.gen(function* () {
      const mock = MockProvider.make(final)
      yield* Kernel.run(auto(ofBlocks), "go", { provider: mock })
      const system = systemOf(mock.lastCall)
      assert.include(system, "Your skills:\n- weather: Reports the weather.")
      assert.notInclude(system, "/skills")
    }).pipe(Effect.provide(kernel(weather)))
  )

  it.effect("leaves the prompts of a fixed dialect without skills (BP-163)", () =>
    Effect.gen(function* () {
      const mock = MockProvider.make(final)
      yield* Kernel.run({ ...auto(ofTools), dialect: "blocks" as const }, "go", { provider: mock })
      assert.notInclude(systemOf(mock.lastCall), "weather")
      assert.include(systemOf(mock.lastCall), "/skills")
    }).pipe(Effect.provide(kernel(weather)))
  )

  it.effect("keeps the dialect and the prompt of a run that is resumed with another model", () =>
    Effect.gen(function* () {
      const broken = MockProvider.make(`<block type="command" name="weather">Rome</block>`).failOnStep(1)
      const agent = auto(ofBlocks)
      yield* Effect.exit(Kernel.run(agent, "go", { runId: "r", provider: broken }))
      const mock = MockProvider.make(final)
      yield* Kernel.resume({ ...agent, model: ofTools }, "r", { provider: mock })
      assert.strictEqual(systemOf(mock.lastCall), systemOf(broken.calls[0]))
      assert.deepStrictEqual(namesOf(mock.lastCall), [])
    }).pipe(Effect.provide(kernel(weather)))
  )

  it.effect("hands a conversation over in the best dialect of the other agent's model", () =>
    Effect.gen(function* () {
      const desk = Agent.make({ ...options("desk"), model: ofTools })
      const front = Agent.make({ ...options("front"), model: ofBlocks, handoffs: [desk] })
      const mock = MockProvider.make(
        `<block type="command" name="weather">{"city": "Rome"}</block>`,
        `<block type="command" name="transfer_to_desk">{}</block>`,
        "sunny"
      )
      yield* Kernel.run(front, "go", { provider: mock })
      const told = mock.lastCall?.messages.flatMap(({ content }) => content.map(({ type }) => type)) ?? []
      assert.includeMembers(told, ["tool_use", "tool_result"])
      assert.deepStrictEqual(namesOf(mock.lastCall), ["weather"])
    }).pipe(Effect.provide(kernel(weather)))
  )
})

const options = (name: string) => ({ name, instructions: "", skills: "all", dialect: "auto" }) as const

/** Every fifth wish, in the long run all 50. */
const asked = wishes.filter((_, index) => index % times(1, 5) === 0)

describe("500 skills in blocks", () => {
  it.effect("keep the prompt below 8 KB, which says how to find them", () =>
    Effect.gen(function* () {
      const mock = MockProvider.make(final)
      yield* Kernel.run(auto(ofBlocks), "go", { provider: mock })
      const system = systemOf(mock.lastCall)
      assert.include(system, "You have 500 skills")
      assert.notInclude(system, "calendar_create")
      assert.isBelow(mock.lastCall === undefined ? Infinity : bytesOf(mock.lastCall), 8_192)
    }).pipe(Effect.provide(kernel(...manySkills)))
  )

  it.effect("are found by the words of /skills, the right one in every case, in under 8 KB with the prompt", () =>
    Effect.gen(function* () {
      let found = 0
      for (const [words, name] of asked) {
        const mock = MockProvider.make(`<block type="command" name="/skills">${words}</block>`, final)
        yield* Kernel.run(auto(ofBlocks), "go", { provider: mock })
        if (resultsOf(mock.lastCall).includes(`- ${name}: `)) found++
        assert.isBelow(mock.lastCall === undefined ? Infinity : bytesOf(mock.lastCall), 8_192)
      }
      assert.strictEqual(found, times(50, 10))
    }).pipe(Effect.provide(kernel(...manySkills)))
  )

  it.effect(
    "are listed by /skills without words up to the limit, with how to find the others, and no match is said",
    () =>
      Effect.gen(function* () {
        const mock = MockProvider.make(
          `<block type="command" name="/skills">zebra</block>`,
          `<block type="command" name="/skills"></block>`,
          final
        )
        yield* Kernel.run(auto(ofBlocks), "go", { provider: mock })
        assert.include(resultsOf(mock.calls[1]), "None of 500 skills matches these words.")
        const listed = manySkills.filter(({ name }) => resultsOf(mock.lastCall).includes(`- ${name}: `)).length
        assert.isAbove(listed, 10)
        assert.include(resultsOf(mock.lastCall), `These are ${listed} of 500 skills. Find the others by words`)
        assert.isBelow(mock.lastCall === undefined ? Infinity : bytesOf(mock.lastCall), 12_000)
      }).pipe(Effect.provide(kernel(...manySkills)))
  )

  it.effect("are all listed in the prompt when `Limits.listedTokens` allows it", () =>
    Effect.gen(function* () {
      const mock = MockProvider.make(final)
      yield* Kernel.run(auto(ofBlocks), "go", { provider: mock })
      assert.include(systemOf(mock.lastCall), "- taxes_comment: ")
    }).pipe(Effect.provide([kernel(...manySkills), Limits.layer({ listedTokens: 100_000 })]))
  )
})

describe("500 skills as native tools", () => {
  it.effect("are offered after a search, the right one in every case, in below 8 KB", () =>
    Effect.gen(function* () {
      for (const [words, name] of asked) {
        const mock = MockProvider.make(call("search_skills", { words }), call(name, { id: "1" }), "done")
        const result = yield* Kernel.run(auto(ofTools), "go", { provider: mock })
        assert.deepStrictEqual(namesOf(mock.calls[0]), ["search_skills"])
        assert.include(namesOf(mock.calls[1]), name)
        assert.include(resultsOf(mock.lastCall), `${name.replace("_", " ")} done`)
        assert.deepStrictEqual(
          result.calls.map(({ isError }) => isError),
          [false, false]
        )
        for (const request of mock.calls) assert.isBelow(bytesOf(request), 8_192)
      }
    }).pipe(Effect.provide(kernel(...manySkills)))
  )

  it.effect("stay offered once found, in order, also after a resume, and the oldest are dropped first", () =>
    Effect.gen(function* () {
      const first = MockProvider.make(
        call("search_skills", { words: "calendar event" }, "a"),
        call("search_skills", { words: "door lock" }, "b")
      ).failOnStep(2)
      const agent = auto(ofTools)
      yield* Effect.exit(Kernel.run(agent, "go", { runId: "r", provider: first }))
      const then = MockProvider.make("done")
      yield* Kernel.resume(agent, "r", { provider: then })
      const shown = namesOf(first.calls[1])
      assert.lengthOf(shown, 9)
      assert.deepStrictEqual(namesOf(then.calls[0]).slice(0, 1), ["search_skills"])
      assert.deepStrictEqual(namesOf(then.calls[0]).slice(1, 5), shown.slice(5, 9))
      assert.lengthOf(namesOf(then.calls[0]), 13)
    }).pipe(Effect.provide([kernel(...manySkills), Limits.layer({ nativeSkills: 12 })]))
  )

  it.effect("do not hide the agents that can be called", () =>
    Effect.gen(function* () {
      const helper = Agent.make({ ...options("helper"), model: ofTools })
      const agent = Agent.make({ ...options("lead"), model: ofTools, agents: [helper] })
      const mock = MockProvider.make("done")
      yield* Kernel.run(agent, "go", { provider: mock })
      assert.deepStrictEqual(namesOf(mock.lastCall), ["search_skills", "helper"])
    }).pipe(Effect.provide(kernel(...manySkills)))
  )

  it.effect("are all sent when a skill has the name of the search tool", () =>
    Effect.gen(function* () {
      const mock = MockProvider.make("done")
      yield* Kernel.run(auto(ofTools), "go", { provider: mock })
      assert.lengthOf(namesOf(mock.lastCall), 501)
    }).pipe(
      Effect.provide(
        kernel(
          ...manySkills,
          Skill.make("search_skills", {
            description: "",
            input: Schema.Struct({}),
            execute: () => Effect.succeed("")
          })
        )
      )
    )
  )
})
