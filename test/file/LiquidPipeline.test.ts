import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Agent, Kernel, Message, SkillRegistry } from "kernai"
import { LiquidPipeline } from "kernai/file"
import { MockProvider } from "kernai/testing"

const prompt = (
  instructions: string,
  options: LiquidPipeline.Options & {
    context?: { readonly [name: string]: string | ReadonlyArray<string> }
    input?: string
  } = {}
) => {
  const { context = {}, input = "go", ...limits } = options
  const mock = MockProvider.make("done")
  const agent = Agent.make({ name: "Ada", instructions, model: { id: "m", capabilities: ["text"] } })
  const pipeline = Layer.orDie(LiquidPipeline.layer(limits))
  return Kernel.run(agent, input, { context }).pipe(
    Effect.provide(
      Kernel.layerMemory.pipe(
        Layer.provide(pipeline),
        Layer.provide([Layer.orDie(SkillRegistry.layer()), MockProvider.layerOf(mock)])
      )
    ),
    Effect.map(() => {
      const [first] = mock.messagesAt(0) ?? []
      return first?.role === "system" ? Message.text(first) : ""
    })
  )
}

const failure = (instructions: string, options?: Parameters<typeof prompt>[1]) =>
  Effect.map(Effect.flip(prompt(instructions, options)), (error) =>
    error._tag === "TemplateError" ? [error.line, error.detail] : error._tag
  )

describe("LiquidPipeline", () => {
  it.effect("renders the instructions with the run's context, the agent and the user's text", () =>
    Effect.gen(function* () {
      const text =
        "{{ agent.name }} helps {% for user in users %}{{ user | upcase }} {% endfor %}with {{ input }}.{{ missing }}"
      assert.strictEqual(
        yield* prompt(text, { context: { users: ["ann", "bob"] }, input: "tea" }),
        "Ada helps ANN BOB with tea."
      )
    })
  )

  it.effect("parses the agent's instructions as a template, and no values (AC-11)", () =>
    Effect.gen(function* () {
      const hostile = "{{ agent.name }} {% include 'x' %}"
      assert.strictEqual(
        yield* prompt("{{ input }} {{ note }}", { input: hostile, context: { note: hostile } }),
        `${hostile} ${hostile}`
      )
    })
  )

  it.effect(
    "fails with a typed error and its line, and has no access to files, foreign properties or unknown filters",
    () =>
      Effect.gen(function* () {
        assert.deepStrictEqual((yield* failure("one\n{% if %}\n{% nothing %}"))[0], 2)
        for (const tag of ["include", "render", "layout"]) {
          const [line, detail] = yield* failure(`a\nb\n{% ${tag} '/etc/passwd' %}`)
          assert.deepStrictEqual([line, detail], [3, `the tag '${tag}' is not allowed`])
        }
        assert.match(String((yield* failure("{{ input | shell }}"))[1]), /undefined filter: shell/)
        assert.strictEqual(
          yield* prompt("[{{ agent.constructor }}{{ agent.__proto__ }}{{ input.constructor.name }}]"),
          "[]"
        )
      })
  )

  it.effect("fails for an undefined variable in strict mode", () =>
    Effect.gen(function* () {
      const [line, detail] = yield* failure("\n{{ missing }}", { strictVariables: true })
      assert.deepStrictEqual([line, detail], [2, "undefined variable: missing"])
      assert.strictEqual(yield* prompt("{{ input }}", { strictVariables: true }), "go")
    })
  )

  it.effect("counts its output and captures against the limit, however short the template (AC-11)", () =>
    Effect.gen(function* () {
      const twice = "{% capture a %}{{ a }}{{ a }}{% endcapture %}"
      const grown = `{% assign a = "0123456789" %}{% for i in (1..17) %}${twice}{% endfor %}{{ a }}`
      // The time that a busy machine takes is not what is tested.
      const renderLimit = 60_000
      assert.deepStrictEqual(yield* failure(grown, { renderLimit }), [0, "memory alloc limit exceeded"])
      const context = { note: "x".repeat(100_000) }
      const often = "{% for i in (1..11) %}{{ note }}{% endfor %}"
      assert.deepStrictEqual(yield* failure(often, { context, renderLimit }), [0, "memory alloc limit exceeded"])
      assert.lengthOf(yield* prompt(often, { context, renderLimit, memoryLimit: 2_000_000 }), 1_100_000)
    })
  )

  it.effect("enforces its limits of size, time and memory (AC-11)", () =>
    Effect.gen(function* () {
      assert.match(String((yield* failure("x".repeat(100_001)))[1]), /parse length limit/)
      assert.match(String((yield* failure("{% for i in (1..1000000000) %}x{% endfor %}"))[1]), /memory/)
      const loops =
        "{% for i in (1..900) %}{% for j in (1..900) %}{% for k in (1..900) %}{% endfor %}{% endfor %}{% endfor %}"
      assert.match(String((yield* failure(loops, { renderLimit: 20, memoryLimit: 1e12 }))[1]), /render limit/)
    })
  )

  it.effect("enforces configured limits, and provides the first 10,000 characters of the user's text", () =>
    Effect.gen(function* () {
      assert.match(String((yield* failure("twelve chars", { parseLimit: 11 }))[1]), /parse length limit/)
      assert.strictEqual(yield* prompt("twelve chars", { parseLimit: 12 }), "twelve chars")
      const loop = "{% for i in (1..1000) %}{{ i }}{% endfor %}"
      assert.match(String((yield* failure(loop, { renderLimit: 0.001 }))[1]), /render limit/)
      assert.strictEqual(yield* prompt("{{ input }}", { input: "ab".repeat(5_001) }), "ab".repeat(5_000))
    })
  )
})
