import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Result, Schema, Scope } from "effect"
import { BlockTypes, Content } from "kernai"
import * as Bounds from "../src/kit/bounds.ts"

class Chart extends Schema.Class<Chart>("Chart")({ type: Schema.tag("chart"), series: Schema.Array(Schema.Finite) }) {}
const OtherChart = Schema.Struct({ type: Schema.Literal("chart"), title: Schema.String })
const Text = Schema.Struct({ type: Schema.Literal("text"), text: Schema.String })
const Untagged = Schema.Struct({ type: Schema.String })

const wire = { type: "chart", series: [1, 2], later: { x: null } }
const toolResult = { type: "tool_result", call_id: "c", content: [wire], is_error: false }

describe("BlockTypes", () => {
  it.effect("decodes a registered type with its schema, also inside a result, and encodes it without loss", () =>
    Effect.gen(function* () {
      const types = yield* BlockTypes.BlockTypes
      const content = yield* types.decode(toolResult)
      const chart = content.type === "tool_result" ? content.content[0] : undefined
      assert.isTrue(chart?.type === "custom" && chart.value instanceof Chart && chart.value.series[1] === 2)
      assert.deepStrictEqual(Content.encode(content), toolResult)
      assert.deepStrictEqual(yield* Schema.encodeEffect(types.content)(content), toolResult)
      assert.deepStrictEqual(Content.encode(Result.getOrThrow(Content.decode(toolResult))), toolResult)
    }).pipe(Effect.provide(BlockTypes.layer(Chart)))
  )

  it.effect("decodes contents up to the nesting limit and no deeper (CP-6)", () =>
    Effect.gen(function* () {
      const { decode } = yield* BlockTypes.BlockTypes
      const nested = (levels: number): object =>
        levels === 1 ? toolResult : { ...toolResult, content: [nested(levels - 1)] }
      assert.strictEqual((yield* decode(nested(Bounds.blockDepth))).type, "tool_result")
      const error = yield* Effect.flip(decode(nested(Bounds.blockDepth + 1)))
      const path = "/content/0".repeat(Bounds.blockDepth + 1)
      assert.deepInclude(error, { path, reason: "contents nest too deeply" })
    }).pipe(Effect.provide(BlockTypes.layer(Chart)))
  )

  it.effect("reports an error inside a registered type with its full path (CP-6)", () =>
    Effect.gen(function* () {
      const types = yield* BlockTypes.BlockTypes
      const bad = { type: "tool_result", call_id: "c", content: [{ type: "chart", series: [1, "2"] }] }
      const error = yield* Effect.flip(types.decode(bad))
      assert.strictEqual(error.path, "/content/0/series/1")
    }).pipe(Effect.provide(BlockTypes.layer(Chart)))
  )

  it.effect("rejects a built-in type, a second schema for a type, and a schema without a type (CP-8)", () =>
    Effect.gen(function* () {
      const types = yield* BlockTypes.BlockTypes
      for (const schema of [Text, OtherChart]) {
        const error = yield* Effect.flip(types.register(schema))
        assert.deepStrictEqual(error._tag, "BlockTypeConflict")
      }
      const untagged = yield* Effect.flip(types.register(Untagged))
      assert.strictEqual(untagged._tag, "DefinitionInvalid")
      yield* types.register(Chart)
    }).pipe(Effect.provide(BlockTypes.layer(Chart)))
  )

  it.effect("accepts an equal schema that was rebuilt from the same parts (CP-8)", () =>
    Effect.gen(function* () {
      const types = yield* BlockTypes.BlockTypes
      const make = <S extends Schema.Codec<unknown, unknown>>(item: S) =>
        Schema.Struct({ type: Schema.Literal("chart"), series: Schema.Array(item) })
      yield* types.register(make(Schema.Finite))
      yield* types.register(make(Schema.Finite))
      const others = [make(Schema.String), make(Schema.Finite.check(Schema.isGreaterThan(1)))]
      for (const other of others) {
        assert.strictEqual((yield* Effect.flip(types.register(other)))._tag, "BlockTypeConflict")
      }
    }).pipe(Effect.provide(BlockTypes.layer()))
  )

  it.effect("unregisters a type when its last scope closes, and decodes it as unknown from then on", () =>
    Effect.gen(function* () {
      const types = yield* BlockTypes.BlockTypes
      const scopes = [yield* Scope.make(), yield* Scope.make()] as const
      for (const scope of scopes) yield* Scope.provide(types.register(Chart), scope)
      const seen: Array<string> = []
      const look = Effect.map(types.decode(wire), (content) => seen.push(content.type))
      yield* look
      yield* Scope.close(scopes[0], Exit.void)
      yield* look
      yield* Scope.close(scopes[1], Exit.void)
      yield* look
      assert.deepStrictEqual(seen, ["custom", "custom", "unknown"])
      yield* types.register(OtherChart)
    }).pipe(Effect.provide(BlockTypes.layer()))
  )

  it("creates a content of an application's type from a value", () => {
    const content = Result.getOrThrow(BlockTypes.custom(Chart, new Chart({ series: [3] })))
    assert.deepStrictEqual(Content.encode(content), { type: "chart", series: [3] })
    assert.isTrue(content.value instanceof Chart)
  })
})
