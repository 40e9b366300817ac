import { assert, describe, it } from "@effect/vitest"
import { Effect, HashMap, Option, Random, Result, Schema } from "effect"
import { Address } from "kernai"

const isRefused = (input: string) => Result.isFailure(Address.AgentId.parse(input))

describe("Address", () => {
  it("prints the namespace exactly when it is not `default` (CP-12)", () => {
    const print = (text: string) => String(Result.getOrThrow(Address.AgentId.parse(text)))
    assert.strictEqual(print("default/react/x"), "react/x")
    assert.strictEqual(print("acme/react/x"), "acme/react/x")
    assert.strictEqual(print("react/default"), "react/default")
  })

  it("rejects an invalid segment and does not trim spaces (CP-12)", () => {
    const longest = "a".repeat(255)
    assert.isFalse(isRefused(`${longest}/${longest}/${longest}`))
    for (const text of [
      "",
      "/",
      "a",
      "a/",
      "/a",
      "a//b",
      "a/b/c/",
      " a/b",
      "a/b\n",
      "a\u0000/b",
      "a/\u0085",
      "a/\u00a0b",
      `a/${longest}a`,
      "a/b/c/d/e"
    ]) {
      assert.isTrue(isRefused(text), JSON.stringify(text))
    }
    assert.isFalse(isRefused(`a/${"💡".repeat(255)}`))
  })

  it("quotes only the start of a very long input in its error", () => {
    const result = Address.TopicId.parse("x".repeat(1_000_000))
    assert.isTrue(Result.isFailure(result) && result.failure.input.length < 1_000)
  })

  it("compares by value and is case-sensitive (CP-12)", () => {
    const id = (text: string) => Result.getOrThrow(Address.AgentId.parse(text))
    const map = HashMap.make([id("react/x"), 1], [id("React/x"), 2])
    assert.deepStrictEqual(HashMap.get(map, id("default/react/x")), Option.some(1))
    assert.strictEqual(HashMap.size(map), 2)
  })

  it("decodes from text and encodes to text through its schema", () => {
    const codec = Schema.Struct({ to: Address.AgentIdFromString, about: Address.TopicIdFromString })
    const wire = { to: "a/b", about: "n/agent.progress/r" }
    const value = Schema.decodeSync(codec)(wire)
    assert.instanceOf(value.to, Address.AgentId)
    assert.deepStrictEqual(Schema.encodeSync(codec)(value), wire)
    assert.throws(() => Schema.decodeSync(codec)({ ...wire, to: "a" }))
  })

  it.effect("generates new addresses from Random, so a test can reproduce them (CP-12)", () =>
    Effect.gen(function* () {
      const two = Effect.all([Address.AgentId.generate("react"), Address.AgentId.generate("react", "acme")])
      const first = yield* two.pipe(Random.withSeed("seed"))
      const second = yield* two.pipe(Random.withSeed("seed"))
      assert.deepStrictEqual(first, second)
      assert.notStrictEqual(first[0].key, first[1].key)
      assert.match(first[0].key, /^[0-9a-f]{32}$/)
      assert.strictEqual(first[1].namespace, "acme")
      assert.strictEqual((yield* Effect.flip(Address.AgentId.generate("a b")))._tag, "InvalidAddress")
    })
  )
})
