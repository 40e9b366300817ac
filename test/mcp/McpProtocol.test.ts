import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { McpProtocol } from "kernai/mcp"
import { catalog, failed } from "../support/mcp/recorded.ts"

const ask = (request: unknown) =>
  McpProtocol.answer(catalog(), typeof request === "string" ? request : JSON.stringify(request))
const refusal = (request: unknown) => Effect.map(Effect.flip(ask(request)), (error) => error.message)

describe("McpProtocol", () => {
  it.effect("reports errors of a request in this order (BP-174, BP-175)", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* refusal(" \n\t"), "empty MCP request")
      assert.match(yield* refusal("{"), /^invalid MCP request JSON: ./)
      assert.match(yield* refusal("[".repeat(200)), /^invalid MCP request JSON: it nests deeper than 100 levels$/)
      for (const request of [[], '"tools/list"', 1, null]) {
        assert.strictEqual(yield* refusal(request), "MCP request must be a JSON object")
      }
      for (const request of [{}, { method: null }, { method: "" }, { params: { method: "tools/list" } }]) {
        assert.strictEqual(yield* refusal(request), "MCP request missing method")
      }
      for (const method of [" tools/list", "tools/List", "__proto__", "constructor", "tools/call\n"]) {
        assert.strictEqual(yield* refusal({ method }), `unknown MCP method: ${method}`)
      }
      for (const [method, key] of [
        ["tools/describe", "name"],
        ["tools/call", "name"],
        ["resources/read", "uri"],
        ["prompts/get", "name"]
      ]) {
        for (const params of [undefined, [], "x", {}, { [key!]: "" }, { [key!]: null }]) {
          assert.strictEqual(yield* refusal({ method, params }), `${method} requires params.${key}`)
        }
      }
      assert.strictEqual(yield* refusal({ method: "tools/describe", params: { name: "x" } }), "tool not found: x")
    })
  )

  it.effect("reads an object in place of a text as JSON, even when it has a toString", () =>
    Effect.gen(function* () {
      const odd = { toString: 1, valueOf: 1 }
      const text = JSON.stringify(odd)
      assert.strictEqual(yield* refusal({ method: odd }), `unknown MCP method: ${text}`)
      const call = { method: "tools/call", params: { name: odd, server: odd } }
      assert.strictEqual(
        yield* refusal({ ...call, method: "tools/describe" }),
        `tool not found: ${text} (server=${text})`
      )
      assert.strictEqual(McpProtocol.toolCallOf(JSON.stringify(call))?.name, text)
    })
  )

  it.effect("teaches the right call to a model that writes a tool's name as the method (BP-176)", () =>
    Effect.gen(function* () {
      const message = yield* refusal({
        method: "create_issue",
        params: { server: "nonsense", name: "ignored", title: "</block>", n: 1 }
      })
      assert.isTrue(message.startsWith("unknown MCP method: create_issue."))
      assert.deepStrictEqual(JSON.parse(message.slice(message.indexOf("{"))), {
        method: "tools/call",
        params: { server: "gh", name: "create_issue", arguments: { title: "</block>", n: 1 } }
      })
      const broken = { ...catalog(), tools: () => failed("down") }
      const error = yield* Effect.flip(McpProtocol.answer(broken, `{"method":"create_issue"}`))
      assert.strictEqual(error.message, "unknown MCP method: create_issue")
    })
  )

  it.effect("returns empty lists for an unknown server (BP-175)", () =>
    Effect.gen(function* () {
      for (const method of ["tools/list", "resources/list", "prompts/list"]) {
        assert.strictEqual(McpProtocol.textOf(yield* ask({ method, params: { server: "nowhere" } })), "[]")
      }
    })
  )

  it.effect("treats arguments with any key as plain data (S-10)", () =>
    Effect.gen(function* () {
      const calls: Array<unknown> = []
      yield* McpProtocol.answer(
        catalog(calls),
        `{"method":"tools/call","params":{"name":"text","arguments":{"__proto__":{"polluted":1},"constructor":1}}}`
      )
      assert.include(JSON.stringify(calls), '"__proto__":{"polluted":1}')
      assert.isUndefined(({} as { polluted?: unknown }).polluted)
    })
  )

  it("recognizes a tool call in a request, and no other request as one", () => {
    const of = (request: unknown) => McpProtocol.toolCallOf(JSON.stringify(request))
    assert.deepStrictEqual(of({ method: "tools/call", params: { name: "a", server: "s", arguments: { x: 1 } } }), {
      name: "a",
      server: "s",
      input: { x: 1 }
    })
    assert.deepStrictEqual(of({ method: "tools/call", params: { name: "a" } }), {
      name: "a",
      server: undefined,
      input: {}
    })
    for (const other of [{ method: "tools/call" }, { method: "tools/describe", params: { name: "a" } }, []]) {
      assert.isUndefined(of(other))
    }
    assert.isUndefined(McpProtocol.toolCallOf("{"))
  })

  it.effect("names the requested server of an unknown tool", () =>
    Effect.gen(function* () {
      const describe = (server?: string) =>
        Effect.flip(ask({ method: "tools/describe", params: { name: "none", server } }))
      assert.deepInclude(yield* describe("gh"), { server: "gh", message: "tool not found: none (server=gh)" })
      assert.deepInclude(yield* describe(), { server: "", message: "tool not found: none" })
    })
  )

  describe("renders the answer of a server (BP-177, W-15)", () => {
    it("as one text, with data only when there is nothing else, and a failure by its message", () => {
      const textOf = (value: unknown) => McpProtocol.textOf(McpProtocol.render(value))
      const text = { type: "text", text: "one" }
      assert.strictEqual(textOf({ content: [text], structuredContent: { x: 1, y: 2 } }), "one")
      assert.strictEqual(textOf({ content: [], structuredContent: { x: 1, y: 2 } }), '{"x":1,"y":2}')
      assert.strictEqual(textOf({ content: [text], structuredContent: [1] }), "one\n[1]")
      assert.strictEqual(textOf({ content: [text], isError: true }), "one")
    })

    it("like any other answer when it is neither a resource nor a prompt", () => {
      const rendered = [
        McpProtocol.renderResource({ text: "t" }),
        McpProtocol.renderResource({ contents: [7, { uri: "x://a", blob: "%" }] }),
        McpProtocol.renderPrompt({ messages: "none" }),
        McpProtocol.renderPrompt({ messages: [{ content: { type: "text", text: "Hi" } }, "there"] }),
        McpProtocol.render([
          { type: "resource_link", uri: "x://l" },
          { type: "resource", resource: 1 }
        ])
      ]
      assert.deepStrictEqual(rendered.map(McpProtocol.textOf), [
        '{"text":"t"}',
        "7\n[non-text content omitted: type=resource]",
        '{"messages":"none"}',
        "Hi\nthere",
        "resource (x://l)\n[non-text content omitted: type=resource]"
      ])
    })

    it("with pictures, sounds and files as media", () => {
      const bytes = new Uint8Array([1, 2, 3])
      const { content, isError } = McpProtocol.render({
        content: [
          { type: "text", text: "a" },
          { type: "text", text: "b" },
          { type: "image", data: bytes, mimeType: "image/png" },
          { type: "audio", data: "AQID", mimeType: "audio/wav" },
          { type: "resource", resource: { uri: "x://t", text: "inside" } },
          { type: "resource", resource: { uri: "x://b", blob: bytes, mimeType: "application/pdf" } },
          { type: "resource_link", uri: "x://l", name: "link", description: "far" },
          { type: "image", data: "%%%", mimeType: "image/png" },
          { type: "resource_link", name: "nowhere" },
          { type: "hologram" }
        ]
      })
      assert.isFalse(isError)
      assert.deepStrictEqual(
        content.map((part) => ("data" in part ? [part.type, part.data, "mediaType" in part && part.mediaType] : part)),
        [
          { type: "text", text: "a\nb" },
          ["image", bytes, "image/png"],
          ["audio", bytes, "audio/wav"],
          { type: "text", text: "inside" },
          ["document", bytes, "application/pdf"],
          {
            type: "text",
            text: "link (x://l): far\n[non-text content omitted: type=image]\n[non-text content omitted: type=resource_link]\n[non-text content omitted: type=hologram]"
          }
        ]
      )
    })

    it("with structured content as data, without its repetition as text", () => {
      assert.deepStrictEqual(
        McpProtocol.render({ content: [{ type: "text", text: '{ "x": 1 }' }], structuredContent: { x: 1 } }).content,
        [{ type: "data", data: { x: 1 } }]
      )
      assert.deepStrictEqual(
        McpProtocol.render({ content: [{ type: "text", text: "one" }], structuredContent: { x: 1 } }).content,
        [
          { type: "text", text: "one" },
          { type: "data", data: { x: 1 } }
        ]
      )
    })

    it("as an error with its pictures when the call failed", () => {
      const answer = McpProtocol.render({
        isError: true,
        content: [
          { type: "text", text: "bad path" },
          { type: "image", data: "AQID", mimeType: "image/png" }
        ]
      })
      assert.isTrue(answer.isError)
      assert.deepStrictEqual(
        answer.content.map((part) => (part.type === "error" ? [part.type, part.errorType, part.message] : part.type)),
        [["error", "McpToolError", "bad path"], "image"]
      )
    })

    it("with a text that is not a string as JSON, and null as nothing (BP-177)", () => {
      const items = [{ type: "text", text: 5 }, { text: [true] }, { type: "text" }, { text: null }, { texts: 1 }]
      assert.strictEqual(McpProtocol.textOf(McpProtocol.render(items)), '5\n[true]\n\n\n{"texts":1}')
      assert.strictEqual(McpProtocol.textOf(McpProtocol.render({ type: "text", text: 5 })), "5")
    })

    it("as text when it is anything else, and never fails", () => {
      const cycle: { self?: unknown } = {}
      cycle.self = cycle
      const texts = [null, "s", 7, true, [], ["a", null, { k: 1 }], { a: [true, null] }, cycle].map((value) =>
        McpProtocol.textOf(McpProtocol.render(value))
      )
      assert.deepStrictEqual(texts, [
        "",
        "s",
        "7",
        "true",
        "",
        'a\nnull\n{"k":1}',
        '{"a":[true,null]}',
        '{"self":"[cycle]"}'
      ])
    })

    it("with the roles of a prompt and the contents of a resource", () => {
      const said = McpProtocol.renderPrompt({
        messages: [
          { role: "user", content: { type: "text", text: "Hi" } },
          { role: "assistant", content: { type: "image", data: "AQID", mimeType: "image/png" } }
        ]
      })
      assert.strictEqual(McpProtocol.textOf(said), "user: Hi\nassistant:\n[non-text content omitted: type=image]")
      assert.strictEqual(said.content.at(-1)?.type, "image")
      const read = McpProtocol.renderResource({
        contents: [
          { uri: "x://a", text: "t" },
          { uri: "x://b", blob: new Uint8Array([1]), mimeType: "image/png" }
        ]
      })
      assert.deepStrictEqual(
        read.content.map((part) => part.type),
        ["text", "image"]
      )
    })
  })
})
