import { assert, describe, it } from "@effect/vitest"
import { Equal, Hash, Result, Schema } from "effect"
import { Content } from "kernai"
import * as Bounds from "../src/kit/bounds.ts"
import { cases } from "./support/property.ts"

const read = (wire: unknown) => Result.getOrThrow(Content.decode(wire))
const pathOf = (wire: unknown) => {
  const result = Content.decode(wire)
  return Result.isFailure(result) ? result.failure.path : "no fault"
}
const parse = (json: string): unknown => JSON.parse(json)
const nested = (levels: number): unknown => {
  let wire: unknown = { type: "text", text: "deep" }
  for (let level = 0; level < levels; level++) wire = { type: "tool_result", call_id: "c", content: [wire] }
  return wire
}

const samples: ReadonlyArray<Content.Content> = [
  Content.text("hi"),
  Content.code("1 + 1", "ts"),
  Content.data({ a: [1, null] }, "schema"),
  Content.error("Oops", "it broke", { recoverable: false, details: { code: 7 } }),
  Content.image({ data: new Uint8Array([1, 2, 3]), mediaType: "image/png" }),
  Content.audio({ url: "https://e.com/a.mp3", transcript: "la la" }),
  Content.video({ fileId: "media_1" }),
  Content.document({ url: "https://e.com/a.pdf", filename: "a.pdf" }),
  Content.toolUse("c1", "search", { query: "x", tool_name: "kept" }),
  Content.toolResult("c1", [Content.text("found"), Content.image({ fileId: "media_2" })], { isError: true }),
  Content.thinking("hm", { redacted: true, origin: "anthropic", signature: "sig" }),
  Content.uiResource("ui://form", { text: "Form", structuredContent: { a: 1 }, mimeType: "text/html" })
]

describe("Content", () => {
  for (const content of samples) {
    it(`${content.type}: the constructor and the decoder of its wire form agree (CP-2, CP-4)`, () => {
      const again = read(JSON.parse(JSON.stringify(Content.encode(content))))
      assert.deepStrictEqual(again, content)
      assert.isTrue(Equal.equals(again, content))
      assert.strictEqual(Hash.hash(again), Hash.hash(content))
      assert.isTrue(Object.isFrozen(content) && Object.isFrozen(again))
    })
  }

  it("writes snake_case and leaves user data unchanged (CP-17)", () => {
    assert.deepStrictEqual(Content.encode(Content.toolUse("c", "t", { callId: 1, tool_name: 2 })), {
      type: "tool_use",
      call_id: "c",
      tool_name: "t",
      arguments: { callId: 1, tool_name: 2 }
    })
  })

  it("keeps unknown fields of a known type, also those that resemble its own (CP-3)", () => {
    const wire = parse(
      '{"type":"tool_use","call_id":"c","tool_name":"t","arguments":{},"callId":5,"~callId":6,"media_type":null,"__proto__":{"polluted":1},"x":[{}]}'
    )
    const content = read(wire)
    assert.isTrue(content.type === "tool_use" && content.callId === "c")
    assert.strictEqual(JSON.stringify(sorted(Content.encode(content))), JSON.stringify(sorted(wire)))
    assert.strictEqual(
      JSON.stringify(sorted(Content.extras(content))),
      '{"__proto__":{"polluted":1},"callId":5,"media_type":null,"x":[{}],"~callId":6}'
    )
    assert.isUndefined(Reflect.get({}, "polluted"))
    assert.strictEqual(Object.getPrototypeOf(content), Object.prototype)
  })

  it("distinguishes contents that differ only in an unknown field (CP-4)", () => {
    assert.isFalse(Equal.equals(read({ type: "text", text: "a", v: 1 }), read({ type: "text", text: "a", v: 2 })))
  })

  it("keeps the fields a provider added to its thinking (CP-9)", () => {
    const wire = { type: "thinking", content: "", redacted: true, signature: { opaque: ["x"] }, encrypted: "blob" }
    assert.deepStrictEqual(Content.encode(read(wire)), wire)
  })

  it("hides redacted contents from people and exports, at any depth (CP-9)", () => {
    const hidden = Content.thinking("secret", { redacted: true })
    const shown = Content.encode(Content.uiForm(Content.toolResult("c", [hidden, Content.thinking("open")])))
    assert.notInclude(JSON.stringify(shown), "secret")
    assert.include(JSON.stringify(shown), "open")
    assert.strictEqual(Content.toText(hidden), "[Thinking: redacted]")
  })

  it("freezes decoded contents at every depth and shares nothing with the input (CP-4)", () => {
    const wire = { type: "data", data: { list: [{ a: 1 }] } }
    const content = read(wire)
    wire.data.list[0]!.a = 2
    assert.deepStrictEqual(content, Content.data({ list: [{ a: 1 }] }))
    assert.isTrue(content.type === "data" && Object.isFrozen(content.data["list"]))
    assert.throws(() => Object.assign(Object(Reflect.get(content, "data")), { list: 1 }))
  })

  it("copies bytes in and out, so they cannot be changed from outside (CP-4)", () => {
    const bytes = new Uint8Array([1, 2, 3])
    const made = Content.image({ data: bytes })
    const decoded = read({ type: "image", data: "AQID" })
    bytes[0] = 9
    for (const image of [made, decoded]) {
      if (image.type !== "image" || image.data === undefined) return assert.fail("not an image with bytes")
      image.data[0] = 9
      assert.deepStrictEqual(image.data, new Uint8Array([1, 2, 3]))
      assert.strictEqual(Content.encode(image)["data"], "AQID")
    }
  })

  it("preserves an unknown type verbatim over any number of hops, `unknown` and `custom` included (CP-7)", () => {
    for (const type of ["unknown", "custom", "v2_image", "__proto__", "constructor", "Text"]) {
      const wire = { type, raw: { type: "x" }, list: [null, 1], nothing: null }
      const content = read(Content.encode(read(Content.encode(read(wire)))))
      assert.isTrue(content.type === "unknown" && content.wireType === type)
      assert.deepStrictEqual(Content.encode(content), wire)
      assert.strictEqual(Content.toText(content), `[UnknownBlock: ${type}]`)
    }
  })

  it("reports the innermost error (CP-2, CP-6)", () => {
    const inner = (part: unknown) => ({
      type: "tool_result",
      call_id: "c",
      content: [{ type: "text", text: "" }, part]
    })
    const faults: ReadonlyArray<readonly [unknown, string]> = [
      [5, ""],
      [null, ""],
      [[], ""],
      [{ type: 1 }, "/type"],
      [{ type: "text", text: 5 }, "/text"],
      [{ type: "code", code: "x", language: 1 }, "/language"],
      [{ type: "data", data: [] }, "/data"],
      [{ type: "data", data: null }, "/data"],
      [{ type: "error", error_type: "E", message: "m", recoverable: "yes" }, "/recoverable"],
      [{ type: "error", error_type: "E", message: "m", details: [] }, "/details"],
      [{ type: "image", url: "a", file_id: "b" }, ""],
      [{ type: "image" }, ""],
      [{ type: "image", url: 1 }, "/url"],
      [{ type: "document", filename: "a" }, ""],
      [{ type: "audio", transcript: "x" }, ""],
      [{ type: "tool_use", call_id: "c" }, "/tool_name"],
      [{ type: "tool_use", call_id: "c", tool_name: "t", arguments: "{}" }, "/arguments"],
      [{ type: "tool_result", call_id: "c", content: {} }, "/content"],
      [{ type: "ui_resource", uri: "https://x" }, "/uri"],
      [{ type: "ui_resource", uri: "ui://" }, "/uri"],
      [{ type: "ui_resource", uri: "ui://a b" }, "/uri"],
      [inner({ type: "text" }), "/content/1/text"],
      [inner(inner({ type: "image" })), "/content/1/content/1"],
      [inner("text"), "/content/1"]
    ]
    for (const [wire, path] of faults) assert.strictEqual(pathOf(wire), path, JSON.stringify(wire))
  })

  it("accepts only canonical Base64 (CP-2)", () => {
    for (const data of ["", "AA==", "AAA=", "AAAA", "+/+/"])
      assert.strictEqual(Reflect.get(Content.encode(read({ type: "image", data })), "data"), data)
    for (const data of ["AB==", "AAB=", "AA", "A===", "AAAA\n", "AA\r\nAA==", "_-_-", " AAAA", "AA=A"]) {
      assert.strictEqual(pathOf({ type: "image", data }), "/data", JSON.stringify(data))
    }
  })

  it("decodes contents up to the depth limit and no deeper (CP-6)", () => {
    assert.strictEqual(Content.encode(read(nested(Bounds.blockDepth)))["type"], "tool_result")
    assert.include(pathOf(nested(Bounds.blockDepth + 1)), "/content/0/content/0")
    assert.include(pathOf(nested(20_000)), "/content/0")
    const deepData = (levels: number) =>
      parse(`{"type":"data","data":{"a":${"[".repeat(levels)}${"]".repeat(levels)}}}`)
    assert.strictEqual(pathOf(deepData(50)), "no fault")
    assert.include(pathOf(deepData(50_000)), "/data/a/0")
  })

  it("rejects a value that is not JSON with its path, even when reading it throws (R-22)", () => {
    const cycle: { self?: unknown } = {}
    cycle.self = cycle
    const values: ReadonlyArray<readonly [unknown, string]> = [
      [{ a: [undefined] }, "/a/0"],
      [{ a: 1n }, "/a"],
      [{ "a/b": Number.NaN }, "/a~1b"],
      [[1, Infinity], "/1"],
      [{ a: new Error("x") }, "/a"],
      [new Map([[1, 2]]), ""],
      [{ a: new Date(0) }, "/a"],
      [{ a: () => 1 }, "/a"],
      [{ a: Symbol("x") }, "/a"],
      [{ a: new Uint8Array(2) }, "/a"],
      [{ a: { toJSON: () => assert.fail("thrown") } }, "/a"],
      [
        {
          get a() {
            return assert.fail("thrown")
          }
        },
        "/a"
      ],
      [cycle, "/self".repeat(Bounds.jsonDepth)]
    ]
    for (const [value, path] of values) {
      const result = Content.json(value)
      assert.strictEqual(Result.isFailure(result) ? result.failure.path : "no fault", path)
      assert.isTrue(Result.isFailure(Content.decode({ type: "data", data: value })))
    }
    class Point {
      readonly x = 1
    }
    assert.deepStrictEqual<unknown>(Result.getOrThrow(Content.json({ p: new Point(), n: null, z: -0 })), {
      p: { x: 1 },
      n: null,
      z: -0
    })
  })

  it("stops at a value that is too large to copy", () => {
    let wide: unknown = 1
    for (let level = 0; level < 40; level++) wide = [wide, wide]
    const result = Content.json(wide)
    assert.strictEqual(Result.isFailure(result) ? result.failure.reason : "no fault", "too large")
  })

  it("has a text form for each type (CP-10)", () => {
    assert.deepStrictEqual(samples.map(Content.toText), [
      "hi",
      "```ts\n1 + 1\n```",
      '{"a":[1,null]}',
      "[Oops]: it broke",
      "[Image: image/png]",
      "[Audio transcript: la la]",
      "[Video: file:media_1]",
      "[Document: a.pdf]",
      "[ToolCall: search(c1)]",
      "[ToolError: c1] found\n[Image: file:media_2]",
      "[Thinking: redacted]",
      "Form"
    ])
    assert.strictEqual(Content.toText(Content.toolResult("c", [])), "[ToolResult: c] (empty)")
    assert.strictEqual(Content.toText(Content.uiResource("ui://x")), "[interactive UI: ui://x]")
    assert.strictEqual(Content.toText(Content.audio({ url: "u" })), "[Audio: u]")
    assert.strictEqual(Content.toText(Content.document({ fileId: "f", mediaType: "a/b" })), "[Document: a/b]")
    assert.strictEqual(Content.toText(Content.code("```")), "````\n```\n````")
  })

  it("fences code with one backtick more than any run inside it, in one pass", () => {
    assert.strictEqual(Content.toText(Content.code("a ```` b")), "`````\na ```` b\n`````")
    // One look for each length took minutes, which no test is given.
    const ticks = "`".repeat(300_000)
    assert.strictEqual(Content.toText(Content.code(ticks)), `${ticks}\`\n${ticks}\n${ticks}\``)
  })

  it("describes a medium that a model cannot take (BP-105)", () => {
    const image = Content.image({ fileId: "f", mediaType: "image/png" })
    assert.strictEqual(Content.placeholder(image), "[image unavailable: image/png]")
  })

  it.prop(
    "preserves every JSON object it accepts, and never throws (CP-2)",
    [Schema.JsonObject],
    ([fields]) => {
      for (const type of ["text", "thinking", "image", "tool_result", "later"]) {
        const first = Content.decode({
          text: "",
          content: type === "tool_result" ? [] : "",
          url: "u",
          call_id: "",
          ...fields,
          type
        })
        if (Result.isFailure(first)) continue
        const wire = Content.encode(first.success)
        const again = read(wire)
        assert.isTrue(Equal.equals(again, first.success))
        assert.deepStrictEqual(Content.encode(again), wire)
        const kept = Object.keys(fields).filter((key) => fields[key] !== null && key !== "type")
        assert.deepStrictEqual(
          kept.map((key) => wire[key]),
          kept.map((key) => fields[key])
        )
      }
    },
    cases()
  )

  it("decodes and encodes through its schema, with the same errors", () => {
    const decode = Schema.decodeUnknownResult(Schema.Struct({ parts: Schema.Array(Content.Content) }))
    const wire = { parts: [{ type: "text", text: "a", extra: 1 }, { type: "new" }] }
    const value = Result.getOrThrow(decode(wire))
    assert.deepStrictEqual(Schema.encodeSync(Schema.Struct({ parts: Schema.Array(Content.Content) }))(value), wire)
    const bad = decode({ parts: [{ type: "tool_result", call_id: "c", content: [{ type: "text" }] }] })
    assert.include(Result.isFailure(bad) ? String(bad.failure) : "", '["parts"][0]["content"]["0"]["text"]')
  })
})

const sorted = (value: unknown): unknown => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
}
