import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Content, MediaStore } from "kernai"
import { McpHub } from "kernai/mcp"
import * as Hub from "../support/mcp/hub.ts"
import { sentence, texts } from "../support/mcp/hubAnswers.ts"

describe("McpHub", () => {
  describe("returns the answer of a tool (W-15, BP-177)", () => {
    const png = "iVBORw0KGgo="
    const results = {
      text: {
        content: [
          { type: "text", text: "a" },
          { type: "text", text: "b" }
        ]
      },
      picture: {
        content: [
          { type: "text", text: "see" },
          { type: "image", data: png, mimeType: "image/png" }
        ]
      },
      data: { content: [{ type: "text", text: `{"x": 1}` }], structuredContent: { x: 1 } },
      both: { content: [{ type: "text", text: "one row" }], structuredContent: { x: 1 } },
      wrapped: { content: [{ type: "text", text: "one row" }], structuredContent: { content: "one row" } },
      failed: {
        content: [
          { type: "text", text: "bad path" },
          { type: "image", data: png, mimeType: "image/png" }
        ],
        isError: true
      },
      mute: { content: [], isError: true },
      nothing: { content: [] },
      refused: { error: { code: -32000, message: "no way" } },
      page: { content: [{ type: "text", text: "12 rows" }], structuredContent: { rows: 12 } },
      inline: {
        content: [
          {
            type: "resource",
            resource: { uri: "ui://inline", mimeType: "text/html", text: "<script>alert(1)</script>" }
          }
        ]
      }
    }
    const tools = Object.keys(results).map((name) =>
      Hub.tool(name, name === "page" ? { _meta: { ui: { resourceUri: "ui://table" } } } : {})
    )
    const server = Hub.scripted({
      tools,
      results: {
        ...results,
        "ui://table": {
          contents: [
            { uri: "ui://table", mimeType: "text/html;profile=mcp-app", text: "<p>", _meta: { ui: { csp: {} } } }
          ]
        }
      },
      resources: []
    })

    it.live("with its texts, pictures and data as contents", () =>
      Effect.gen(function* () {
        const { settings } = yield* server
        yield* Effect.gen(function* () {
          assert.deepStrictEqual(texts(yield* Hub.call("mcp_s__text")), ["a\nb"])
          assert.deepStrictEqual(texts(yield* Hub.call("mcp_s__picture")), ["see", "image"])
          assert.deepStrictEqual(yield* Hub.call("mcp_s__data"), [Content.data({ x: 1 })])
          assert.deepStrictEqual(yield* Hub.call("mcp_s__both"), [Content.text("one row\n"), Content.data({ x: 1 })])
          assert.deepStrictEqual(yield* Hub.call("mcp_s__wrapped"), [Content.text("one row")])
          assert.deepStrictEqual(yield* Hub.call("mcp_s__nothing"), [Content.text("")])
        }).pipe(Effect.provide(Hub.hub({ s: settings })))
      })
    )

    it.live("as a failure when the call failed, both as a skill and by the block", () =>
      Effect.gen(function* () {
        const { settings } = yield* server
        yield* Effect.gen(function* () {
          for (const [name, told] of [
            ["failed", "bad path"],
            ["mute", "the tool failed without a message"],
            ["refused", "no way"]
          ] as const) {
            assert.strictEqual(yield* sentence(Hub.call(`mcp_s__${name}`)), told)
            assert.strictEqual(yield* sentence(Hub.speak({ method: "tools/call", params: { name } })), told)
          }
          assert.deepNestedInclude(yield* Effect.flip(Hub.call("mcp_s__failed")), { "content[0].type": "image" })
        }).pipe(Effect.provide(Hub.hub({ s: settings })))
      })
    )

    it.live("with a page as a ui_resource that names its server, and its source only on request (CP-5)", () =>
      Effect.gen(function* () {
        const { settings } = yield* server
        yield* Effect.gen(function* () {
          const [text, page] = (yield* Hub.call("mcp_s__page")) as ReadonlyArray<Content.Content>
          assert.deepStrictEqual(text, Content.text("12 rows\n"))
          assert.deepStrictEqual(Content.encode(page!), {
            type: "ui_resource",
            uri: "ui://table",
            render_mode: "inline",
            text: "",
            structured_content: { rows: 12 },
            mime_type: "text/html;profile=mcp-app",
            server: "s"
          })
          assert.strictEqual(Content.toText(page!), "[interactive UI: ui://table]")
          const [inline] = (yield* Hub.call("mcp_s__inline")) as ReadonlyArray<Content.Content>
          assert.notInclude(Content.toText(inline!), "script")
          const hub = yield* McpHub.McpHub
          assert.deepStrictEqual(yield* hub.readPage("s", "ui://table"), {
            uri: "ui://table",
            mimeType: "text/html;profile=mcp-app",
            html: "<p>",
            meta: { ui: { csp: {} } }
          })
          assert.strictEqual((yield* Effect.flip(hub.readPage("s", "ui://other"))).reason, "remote")
          assert.strictEqual((yield* Effect.flip(hub.readPage("t", "ui://table"))).reason, "not_found")
        }).pipe(Effect.provide(Hub.hub({ s: settings })))
      })
    )

    it.live("truncated when it is long, and keeps the whole among the media", () =>
      Effect.gen(function* () {
        const whole = "é".repeat(150_000)
        const { settings } = yield* Hub.scripted({ tools: [Hub.tool("big")], results: { big: Hub.said(whole) } })
        yield* Effect.gen(function* () {
          const [text] = texts(yield* Hub.call("mcp_s__big"))
          const id = /kept as (media_\w+)/.exec(text!)![1]!
          assert.match(text!, /^\[The answer has 300000 bytes\. /)
          assert.isAtMost(new TextEncoder().encode(text).byteLength, 201_000)
          assert.notInclude(text, "\ufffd")
          const bytes = yield* (yield* MediaStore.MediaStore).bytes(id)
          assert.strictEqual(new TextDecoder().decode(bytes), whole)
        }).pipe(Effect.provide([Hub.hub({ s: settings }), MediaStore.layerMemory]))
      })
    )
  })

  describe("answers the block from all servers (BP-174 to BP-178)", () => {
    const servers = Effect.gen(function* () {
      const one = yield* Hub.scripted({
        tools: [Hub.tool("read", { description: "of one" })],
        resources: [{ uri: "x://a", name: "a", mimeType: "text/plain" }],
        prompts: [{ name: "greet", description: "Greets", arguments: [{ name: "who", required: true }] }],
        results: {
          read: Hub.said("one"),
          "x://a": { contents: [{ uri: "x://a", text: "A" }] },
          greet: { messages: [{ role: "user", content: { type: "text", text: "hello" } }] }
        }
      })
      const two = yield* Hub.scripted({
        tools: [Hub.tool("read"), Hub.tool("only")],
        resources: [],
        resourceTemplates: [{ uriTemplate: "y://{id}", name: "y" }],
        results: {
          read: Hub.said("two"),
          only: Hub.said("only"),
          "y://7": { contents: [{ uri: "y://7", text: "seven" }] }
        }
      })
      return {
        one,
        two,
        layer: Hub.hub({ one: one.settings, two: two.settings, away: { command: "no-such-program" } })
      }
    })
    const ask = (method: string, params: object = {}) =>
      Effect.map(Hub.speak({ method, params }), (answer) => texts(answer)[0]!)
    const askJson = (method: string, params: object = {}) =>
      Effect.map(ask(method, params), (text): unknown => JSON.parse(text))

    it.live("with lists in the order of the config, without servers that are away", () =>
      Effect.gen(function* () {
        const { layer } = yield* servers
        yield* Effect.gen(function* () {
          assert.deepStrictEqual(yield* askJson("servers/list"), ["one", "two", "away"])
          assert.deepStrictEqual(yield* askJson("tools/list"), [
            { name: "read", description: "of one", server: "one" },
            { name: "read", description: null, server: "two" },
            { name: "only", description: null, server: "two" }
          ])
          assert.deepStrictEqual(yield* askJson("tools/list", { server: "nobody" }), [])
          assert.match(yield* sentence(ask("tools/list", { server: "away" })), /no-such-program.*cannot be started/)
          assert.deepStrictEqual(yield* askJson("resources/list"), [
            { uri: "x://a", name: "a", mime_type: "text/plain", server: "one" },
            { uri: "y://{id}", name: "y", server: "two" }
          ])
          assert.deepStrictEqual(yield* askJson("prompts/list"), [
            { name: "greet", description: "Greets", arguments: [{ name: "who", required: true }], server: "one" }
          ])
        }).pipe(Effect.provide(layer))
      })
    )

    it.live("with the first server that has the requested entry, or the named one", () =>
      Effect.gen(function* () {
        const { layer, one, two } = yield* servers
        yield* Effect.gen(function* () {
          assert.strictEqual(yield* ask("tools/call", { name: "read", arguments: { a: 1 } }), "one")
          assert.strictEqual(yield* ask("tools/call", { name: "read", server: "two" }), "two")
          assert.strictEqual(yield* ask("tools/call", { name: "only" }), "only")
          assert.strictEqual(yield* ask("resources/read", { uri: "x://a" }), "A")
          assert.strictEqual(yield* ask("resources/read", { uri: "y://7" }), "seven")
          assert.strictEqual(yield* ask("prompts/get", { name: "greet", arguments: { who: 7 } }), "user: hello")
          assert.deepStrictEqual(
            one.calls().map((line) => JSON.parse(line)),
            [
              { name: "read", arguments: { a: 1 }, _meta: { progressToken: "call-1" } },
              { uri: "x://a" },
              { name: "greet", arguments: { who: "7" } }
            ]
          )
          assert.strictEqual(yield* sentence(ask("tools/call", { name: "nix" })), "tool not found: nix")
          assert.strictEqual(
            yield* sentence(ask("tools/call", { name: "x", server: "q" })),
            "tool not found: x (server=q)"
          )
          assert.strictEqual(yield* sentence(ask("resources/read", { uri: "z://1" })), "resource not found: z://1")
          assert.strictEqual(yield* sentence(ask("prompts/get", { name: "p" })), "prompt not found: p")
          assert.lengthOf(two.calls(), 3)
        }).pipe(Effect.provide(layer))
      })
    )
  })
})
