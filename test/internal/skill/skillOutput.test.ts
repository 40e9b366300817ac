import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import * as Content from "../../../src/Content.ts"
import * as Media from "../../../src/Media.ts"
import * as Skill from "../../../src/Skill.ts"
import { cases } from "../../support/property.ts"

describe("Skill.toOutput (BP-72, BP-73)", () => {
  const png = Media.fromBytes(new Uint8Array([1, 2, 3]), "image/png")
  const output = (value: unknown) => Result.getOrThrow(Skill.toOutput(value))

  it("turns null into one empty text, and keeps a string", () => {
    assert.deepStrictEqual(output(null), {
      content: [Content.text("")],
      media: [],
      value: null,
      isShownAsText: true
    })
    assert.deepStrictEqual(output("hi"), { content: [Content.text("hi")], media: [], value: "hi" })
  })

  it("returns an object as data and other JSON as its text (AC-14)", () => {
    assert.deepStrictEqual(output(0).content, [Content.text("0")])
    assert.deepStrictEqual(output(false).content, [Content.text("false")])
    assert.deepStrictEqual(output({ a: [1, null] }), {
      content: [Content.data({ a: [1, null] })],
      media: [],
      value: { a: [1, null] }
    })
  })

  it("keeps strings and media of a list, and converts other items to text", () => {
    const given = output(["a", png, 1, null, { b: 2 }])
    assert.deepStrictEqual(given.content.map(Content.toText).join(""), `a1{"b":2}`)
    assert.deepStrictEqual(given.media, [png])
    assert.deepStrictEqual(output([]), { content: [], media: [], value: [], isShownAsText: true })
  })

  it("splits a result into text, media and metadata (BP-154)", () => {
    const given = output(Skill.result("done", { media: png, metadata: { cost: 1 } }))
    assert.deepStrictEqual(given, {
      content: [Content.text("done")],
      media: [png],
      metadata: { cost: 1 },
      value: "done"
    })
    assert.deepStrictEqual(output(Skill.result()), { content: [Content.text("")], media: [], value: "" })
  })

  it("keeps contents, and leaves JSON with a `type` of its own unchanged", () => {
    assert.deepStrictEqual(output(Content.code("x", "ts")).content, [Content.code("x", "ts")])
    const video = { type: "video", url: "https://example.test/v", title: "V" }
    assert.deepStrictEqual(output(video).content, [Content.data(video)])
  })

  it("does not mistake frozen JSON for a content because of its `type` (R-22)", () => {
    const others: ReadonlyArray<Content.JsonObject> = [
      { type: "data", rows: [1] },
      { type: "text", text: 5 },
      { type: "error", error_type: "E", message: "m" },
      { type: "image", image: { url: "x" } },
      { type: "tool_use", callId: "c", toolName: "t" },
      { type: "tool_result", callId: "c", content: ["x"] },
      { type: "unknown" }
    ]
    for (const other of others) {
      assert.deepStrictEqual(output(Object.freeze({ ...other })).content, [Content.data(other)])
      assert.deepStrictEqual(output([Object.freeze({ ...other })]).content, [Content.data(other)])
    }
    const contents = [
      Content.data({}),
      Content.error("E", "m"),
      Content.image({ fileId: "f" }),
      Content.audio({ data: new Uint8Array([1]) }),
      Content.toolUse("c", "t"),
      Content.toolResult("c", [Content.thinking("t"), Content.uiResource("ui://a")]),
      Result.getOrThrow(Content.decode({ type: "weather" }))
    ]
    for (const content of contents) assert.deepStrictEqual(output(content).content, [content])
  })

  it("accepts only a complete medium as one, and treats others as JSON (R-22)", () => {
    const whole = { kind: "image", mimeType: "image/png", metadata: {} }
    const others: ReadonlyArray<Content.JsonObject> = [
      JSON.parse(JSON.stringify(png)),
      { ...whole, source: { _tag: "Url", url: 5 } },
      { ...whole, source: { _tag: "Zip" } },
      { ...whole, mimeType: 5, source: { _tag: "Url", url: "u" } },
      { ...whole, kind: "smell", source: { _tag: "Url", url: "u" } },
      { ...whole, metadata: null, source: { _tag: "Url", url: "u" } }
    ]
    for (const other of others) assert.deepStrictEqual(output(other).content, [Content.data(other)])
    for (const media of [png, Media.fromUrl("u"), Media.fromPath("p")]) {
      assert.deepStrictEqual(output(media).media, [media])
    }
  })

  it("rejects a result with invalid text or media, with the path (R-22)", () => {
    const result = Skill.result("done")
    const cases: ReadonlyArray<readonly [unknown, string]> = [
      [{ ...result, text: 5 }, "/text"],
      [{ ...result, text: null }, "/text"],
      [{ ...result, media: [png, "x"] }, "/media/1"],
      [[{ ...result, media: null }], "/0/media/0"]
    ]
    for (const [value, path] of cases) {
      const refused = Skill.toOutput(value)
      assert.isTrue(Result.isFailure(refused) && refused.failure.path === path, path)
    }
  })

  it("never prints the bytes of a medium", () => {
    const value = JSON.stringify(output(png).value)
    assert.include(value, "image/png")
    assert.notInclude(value, "[1,2,3]")
  })

  it("rejects values JSON cannot represent, with the path (R-22)", () => {
    const cycle: { self?: unknown } = {}
    cycle.self = cycle
    const cases: ReadonlyArray<readonly [unknown, string]> = [
      [[undefined], "/0"],
      [{ a: { b: undefined } }, "/a/b"],
      [{ a: [1n] }, "/a/0"],
      [[Number.NaN], "/0"],
      [{ n: Infinity }, "/n"],
      [{ e: new Error("secret") }, "/e"],
      [new Error("secret"), ""],
      [{ m: new Map() }, "/m"],
      [{ s: new Set() }, "/s"],
      [{ d: new Date() }, "/d"],
      [{ f: () => 1 }, "/f"],
      [{ f: Symbol("x") }, "/f"],
      [{ b: new Uint8Array(1) }, "/b"],
      [{ p: Promise.resolve(1) }, "/p"],
      [
        {
          j: {
            toJSON: () => {
              throw new Error("secret")
            }
          }
        },
        "/j"
      ],
      [
        {
          get g(): never {
            throw new Error("secret")
          }
        },
        "/g"
      ],
      [{ ...Skill.result("x"), metadata: { m: 1n } }, "/metadata/m"]
    ]
    for (const [value, path] of cases) {
      const result = Skill.toOutput(value)
      assert.isTrue(Result.isFailure(result), path)
      if (!Result.isFailure(result)) continue
      assert.strictEqual(result.failure.path, path)
      assert.notInclude(result.failure.message, "secret")
    }
    const looped = Skill.toOutput(cycle)
    assert.isTrue(Result.isFailure(looped) && looped.failure.path.startsWith("/self"))
    assert.isTrue(
      Result.isFailure(
        Skill.toOutput(
          new Proxy(
            {},
            {
              has: () => {
                throw new Error("secret")
              }
            }
          )
        )
      )
    )
  })

  it.prop(
    "returns any JSON unchanged (R-22)",
    [Schema.Json],
    ([json]) => {
      assert.deepStrictEqual(output(json).value, json)
    },
    cases()
  )

  it("copies the value, so later changes have no effect", () => {
    const value = { a: [1] }
    const given = output(value)
    value.a.push(2)
    assert.deepStrictEqual(given.value, { a: [1] })
  })
})
