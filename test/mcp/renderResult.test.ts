/** What a server answered, as contents: the parts that no recorded server shows. */
import { assert, describe, it } from "@effect/vitest"
import { Content } from "kernai"
import { pageOf } from "../../src/mcp/internal/definition.ts"
import * as Render from "../../src/mcp/internal/renderResult.ts"

const tool = (_meta: object) => ({ name: "t", inputSchema: { type: "object" }, _meta }) as Parameters<typeof pageOf>[0]

describe("Render.render", () => {
  it("shows media with structured content, and repeats no text of it (BP-177)", () => {
    const image = { type: "image", data: "AQID", mimeType: "image/png" }
    const answer = { content: [image, { type: "text", text: '{ "a": 1 }' }], structuredContent: { a: 1 } }
    assert.deepStrictEqual(Render.render(answer).content, [
      Content.image({ data: new Uint8Array([1, 2, 3]), mediaType: "image/png" }),
      Content.data({ a: 1 })
    ])
  })

  it("unwraps a text that is wrapped in structured content", () => {
    const answer = { content: [{ type: "text", text: "hi" }], structuredContent: { result: "hi" } }
    assert.deepStrictEqual(Render.render(answer).content, [Content.text("hi")])
  })
})

describe("pageOf", () => {
  it("names the page of a tool in either form, and no other address (CP-5)", () => {
    assert.strictEqual(pageOf(tool({ ui: { resourceUri: "ui://a/b" } })), "ui://a/b")
    assert.strictEqual(pageOf(tool({ "ui/resourceUri": "ui://a/b" })), "ui://a/b")
    for (const uri of ["https://evil.example", "ui://", "ui://a b", "javascript:ui://x", 7]) {
      assert.isUndefined(pageOf(tool({ ui: { resourceUri: uri } })))
    }
    assert.isUndefined(pageOf(tool({})))
  })
})
