/** Runs content-blocks.json: contents on the wire (CP-1 to CP-10). */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Equal, Hash, JsonPointer, Result, Schema } from "effect"
import { BlockTypes, Content } from "kernai"
import * as Vectors from "../support/vectors.ts"

interface Expectation {
  readonly canonical?: Content.JsonObject
  readonly error?: string
  readonly path?: string
  readonly class?: string
  readonly classAt?: { readonly [pointer: string]: string }
  readonly text?: string
  readonly uiForm?: Content.JsonObject
  readonly mustNotPollute?: boolean
}
interface Registration {
  readonly type: string
  readonly fields: { readonly [name: string]: string }
}
interface Vector {
  readonly id: string
  readonly title: string
  readonly wire: unknown
  readonly register?: Registration | ReadonlyArray<Registration>
  readonly expect: Expectation
}

const file = Vectors.load<{ readonly vectors: ReadonlyArray<Vector>; readonly registration?: ReadonlyArray<Vector> }>(
  "content-blocks",
  {
    // What is expected is looked through vector by vector.
    vectors: [{ ...Vectors.about, wire: true, expect: true }],
    registration: [{ ...Vectors.about, wire: true, register: true, expect: true }]
  }
)
const tally = Vectors.tally("content-blocks.json")

const known = new Set(["canonical", "error", "path", "class", "classAt", "text", "uiForm", "mustNotPollute"])

const fields: { readonly [name: string]: Schema.Codec<unknown, unknown> } = {
  "number[]": Schema.Array(Schema.Finite),
  "string[]": Schema.Array(Schema.String),
  string: Schema.String,
  number: Schema.Finite,
  boolean: Schema.Boolean
}

const typeSchema = (register: Registration) =>
  Schema.Struct({
    type: Schema.Literal(register.type),
    ...Object.fromEntries(
      Object.entries(register.fields).map(([name, field]) => {
        const schema = fields[field]
        assert.isDefined(schema, `field type ${field}`)
        return [name, schema]
      })
    )
  })

/** The name the vectors give to what a wire block was decoded to. */
const classOf = (content: unknown): string => {
  assert.isTrue(Content.isContent(content))
  if (!Content.isContent(content)) return ""
  const classes: { readonly [type: string]: string } = { unknown: "UnknownBlock", custom: "registered" }
  const camel = content.type.replace(/(^|_)([a-z])/g, (_, _start, letter: string) => letter.toUpperCase())
  return classes[content.type] ?? `${content.type === "ui_resource" ? "UIResource" : camel}Block`
}

const at = (content: unknown, pointer: string): unknown =>
  pointer
    .split("/")
    .slice(1)
    .map(JsonPointer.unescapeToken)
    .reduce<unknown>((value, token) => Reflect.get(Object(value), token), content)

const check = Effect.fnUntraced(function* (
  decode: (wire: unknown) => Effect.Effect<Content.Content, Content.BlockValidationError>,
  { wire, expect }: Vector
) {
  const before = JSON.stringify(wire)
  const result = yield* Effect.result(decode(wire))
  if (expect.error !== undefined) {
    assert.isTrue(Result.isFailure(result), "expected a failure")
    if (Result.isFailure(result)) {
      assert.strictEqual(result.failure._tag, expect.error)
      if (expect.path !== undefined) assert.strictEqual(result.failure.path, expect.path)
    }
  } else {
    const content = Result.getOrThrow(result)
    if (expect.canonical !== undefined) {
      assert.deepStrictEqual(Content.encode(content), expect.canonical)
      const again = yield* decode(expect.canonical)
      assert.deepStrictEqual(Content.encode(again), expect.canonical)
      assert.isTrue(Equal.equals(content, again))
      assert.strictEqual(Hash.hash(content), Hash.hash(again))
    }
    if (expect.class !== undefined) assert.strictEqual(classOf(content), expect.class)
    for (const [pointer, name] of Object.entries(expect.classAt ?? {})) {
      assert.strictEqual(classOf(at(content, pointer)), name)
    }
    if (expect.text !== undefined) assert.strictEqual(Content.toText(content), expect.text)
    if (expect.uiForm !== undefined) assert.deepStrictEqual(Content.encode(Content.uiForm(content)), expect.uiForm)
  }
  assert.strictEqual(JSON.stringify(wire), before, "the input was changed")
  assert.isUndefined(Reflect.get({}, "polluted"))
})

const understood = ({ id, expect }: Vector): boolean => {
  const strange = [
    ...Object.keys(expect).filter((key) => !known.has(key)),
    ...Object.keys(expect.classAt ?? {}).filter((pointer) => !pointer.startsWith("/"))
  ]
  if (strange.length === 0) return true
  tally.skip(`${id}: ${strange.join(", ")}`)
  return false
}

describe("content-blocks.json", () => {
  for (const vector of file.vectors) {
    if (!understood(vector)) continue
    it.effect(`${vector.id}: ${vector.title}`, () =>
      check((wire) => Effect.fromResult(Content.decode(wire)), vector).pipe(Effect.tap(() => Effect.sync(tally.ran)))
    )
  }

  for (const vector of file.registration ?? []) {
    const { register } = vector
    if (!understood(vector)) continue
    if (register === undefined) {
      tally.skip(vector.id)
      continue
    }
    it.effect(`${vector.id}: ${vector.title}`, () =>
      Effect.gen(function* () {
        const types = yield* BlockTypes.BlockTypes
        // Before anybody registers it, a type is unknown and loses nothing (CP-8).
        if (vector.expect.canonical !== undefined) {
          const before = Content.encode(yield* types.decode(vector.wire))
          assert.deepStrictEqual(before, vector.expect.canonical)
        }
        const registered = yield* Effect.result(
          Effect.forEach([register].flat(), (one) => types.register(typeSchema(one)), { discard: true })
        )
        if (vector.expect.error === "BlockTypeConflict") {
          assert.isTrue(Result.isFailure(registered) && registered.failure._tag === "BlockTypeConflict")
        } else {
          assert.isTrue(Result.isSuccess(registered))
          yield* check(types.decode, vector)
        }
        tally.ran()
      }).pipe(Effect.provide(BlockTypes.layer()))
    )
  }
  tally.report()
})
