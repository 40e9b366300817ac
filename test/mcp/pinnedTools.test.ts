import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Logger } from "effect"
import { Limits, SkillRegistry } from "kernai"
import { McpHub, ToolPins } from "kernai/mcp"
import * as fs from "node:fs"
import * as path from "node:path"
import * as Support from "../support/mcp/connect.ts"
import * as Hub from "../support/mcp/hub.ts"
import { scope } from "../support/skillSpec.ts"
import { sentence, texts, until } from "../support/mcp/hubAnswers.ts"

describe("McpHub", () => {
  describe("pins tools (S-8)", () => {
    const first = {
      tools: [Hub.tool("add", { description: "Adds" }), Hub.tool("other")],
      results: { add: Hub.said("1") }
    }
    const second = { ...first, tools: [Hub.tool("add", { description: "Adds and tells" }), Hub.tool("other")] }

    it.live("and hides a changed tool from skills and block until its new definition is approved", () =>
      Effect.gen(function* () {
        const server = yield* Hub.scripted(first)
        yield* Effect.gen(function* () {
          const hub = yield* McpHub.McpHub
          server.change(second)
          const { hidden, skills } = yield* until(({ hidden }) => hidden.length > 0)
          assert.deepStrictEqual([...skills.keys()], ["other"])
          assert.deepStrictEqual(
            hidden.map(({ description, reason, tool }) => ({ description, reason, tool })),
            [{ tool: "add", reason: "changed", description: "Adds and tells" }]
          )
          assert.deepStrictEqual(yield* Hub.skillNames, ["mcp_s__other"])
          assert.strictEqual(
            yield* sentence(Hub.speak({ method: "tools/call", params: { name: "add" } })),
            "the tool 'add' of MCP server 's' is hidden, because its definition changed since it was accepted; approve it to use it again"
          )
          assert.notInclude(texts(yield* Hub.speak({ method: "tools/list" }))[0], "Adds")
          assert.deepStrictEqual(server.calls(), [])

          assert.isFalse(yield* hub.approve({ ...hidden[0]!, hash: "other" }))
          const other = (yield* Hub.skill("mcp_s__other")).inputSchema
          assert.isTrue(yield* hub.approve(hidden[0]!))
          assert.deepStrictEqual(yield* Hub.skillNames, ["mcp_s__add", "mcp_s__other"])
          // One of thousands that is shown makes no other anew.
          assert.strictEqual((yield* Hub.skill("mcp_s__other")).inputSchema, other)
          assert.deepStrictEqual(texts(yield* Hub.call("mcp_s__add")), ["1"])
        }).pipe(Effect.provide(Hub.hub({ s: server.settings })))
      })
    )

    it.live("and shows a person the new description on one line, without hidden characters, up to a limit", () =>
      Effect.gen(function* () {
        const server = yield* Hub.scripted(first)
        yield* Effect.gen(function* () {
          yield* McpHub.McpHub
          server.change({
            ...first,
            tools: [Hub.tool("add", { description: `\u001b[2Jok\u202e\n${"é".repeat(50_000)}` })]
          })
          const { hidden } = yield* until(({ hidden }) => hidden.length > 0)
          const { description } = hidden[0]!
          assert.match(description, /^\\u\{1b\}\[2Jok\\u\{202e\} é+…$/)
          assert.isAtMost(description.length, Limits.defaults.descriptionLength + 40)
        }).pipe(Effect.provide(Hub.hub({ s: server.settings })))
      })
    )

    it.live("and shows a tool again that changed back, and a new tool at once", () =>
      Effect.gen(function* () {
        const server = yield* Hub.scripted(first)
        yield* Effect.gen(function* () {
          server.change(second)
          yield* until(({ hidden }) => hidden.length > 0)
          server.change({ ...first, tools: [...first.tools, Hub.tool("new")] })
          yield* until(({ hidden }) => hidden.length === 0)
          assert.deepStrictEqual(yield* Hub.skillNames, ["mcp_s__add", "mcp_s__other", "mcp_s__new"])
        }).pipe(Effect.provide(Hub.hub({ s: server.settings })))
      })
    )

    it.live("and does not call a tool that changed right before the call", () =>
      Effect.gen(function* () {
        const server = yield* Hub.scripted(first)
        yield* Effect.gen(function* () {
          const add = yield* Hub.skill("mcp_s__add")
          server.change(second)
          yield* until(({ hidden }) => hidden.length > 0)
          // Somebody still holds the skill of before.
          const message = yield* sentence(add.call({}, scope))
          assert.strictEqual(message, "tool 'add' of MCP server 's' has changed")
          assert.deepStrictEqual(server.calls(), [])
        }).pipe(Effect.provide(Hub.hub({ s: server.settings })))
      })
    )

    it.live("and keeps the pins in a file for all processes, whatever the names of tools", () =>
      Effect.gen(function* () {
        const server = yield* Hub.scripted({ tools: [Hub.tool("__proto__"), Hub.tool("add", { description: "Adds" })] })
        const file = path.join(path.dirname(server.file), "deep", "pins.json")
        const withPins = (use: Effect.Effect<void, unknown, McpHub.McpHub | SkillRegistry.SkillRegistry>) =>
          use.pipe(
            Effect.provide(
              Hub.hub({ s: server.settings }).pipe(
                Layer.provide(ToolPins.layerFile(file).pipe(Layer.provide(Support.platform)))
              )
            )
          )
        yield* withPins(Effect.void)
        assert.strictEqual(fs.statSync(file).mode & 0o777, 0o600)
        assert.deepStrictEqual(fs.readdirSync(path.dirname(file)), ["pins.json"])
        server.change({
          tools: [Hub.tool("__proto__", { description: "x" }), Hub.tool("add", { description: "Adds more" })]
        })
        yield* withPins(
          McpHub.McpHub.use((hub) =>
            Effect.gen(function* () {
              const [status] = yield* hub.status
              assert.deepStrictEqual(
                status?.hidden.map(({ tool }) => tool),
                ["__proto__", "add"]
              )
              yield* hub.approve(status!.hidden[1]!)
            })
          )
        )
        yield* withPins(Effect.map(Hub.skillNames, (names) => assert.deepStrictEqual(names, ["mcp_s__add"])))
        fs.writeFileSync(file, "{}")
        const error = yield* Effect.flip(withPins(Effect.void))
        assert.strictEqual((error as { readonly _tag: string })._tag, "ConfigInvalid")
      })
    )

    it.live("and logs once, in one line, which tools are hidden and which are left out", () =>
      Effect.gen(function* () {
        const said: Array<unknown> = []
        const logger = Logger.make(({ message }) => said.push(message))
        const names = Array.from({ length: 9 }, (_, index) => `${index}${"n".repeat(100)}`)
        const told = names.slice(0, 5).map((name) => `"${name.slice(0, 60)}…"`)
        const twice = names.map((name) => Hub.tool(name, { description: "one" }))
        const elsewhere = Hub.tool("far", { inputSchema: { type: "object", properties: { a: { $ref: "http://x" } } } })
        const server = yield* Hub.scripted({ tools: [...twice, ...twice, elsewhere] })
        yield* Effect.gen(function* () {
          server.change({ tools: [...twice, ...twice, Hub.tool("new")] })
          yield* until(({ skills }) => skills.size === 10)
        }).pipe(Effect.provide(Layer.provide(Hub.hub({ s: server.settings }), Logger.layer([logger]))))
        assert.deepStrictEqual(said.flat(), [
          `MCP server 's' has tools that are left out ("far"): their schemas refer to other documents`,
          `MCP server 's' has tools that are hidden (${told.join(", ")} and 4 more), each because another tool of the server has the same name`
        ])
      })
    )

    it.live("and drops no pin of a server that keeps renaming its tools: excess tools wait for a person", () =>
      Effect.gen(function* () {
        // The names are long, so that a few hundred are as many as thousands of others.
        const named = (life: number) =>
          Array.from({ length: life === 2 ? 800 : 400 }, (_, index) => Hub.tool(`${life}-${index}-${"n".repeat(250)}`))
        const [first] = named(1)
        const server = yield* Hub.scripted({ tools: named(1), results: {} })
        const file = path.join(path.dirname(server.file), "pins.json")
        const pinned = ToolPins.layerFile(file).pipe(Layer.provide(Support.platform))
        yield* Effect.gen(function* () {
          const hub = yield* McpHub.McpHub
          assert.lengthOf(yield* Hub.skillNames, 400)
          for (const life of [2, 3, 4]) {
            server.change({ tools: named(life) })
            yield* until(({ hidden, skills }) =>
              [...skills.keys(), ...hidden.map(({ tool }) => tool)].some((name) => name.startsWith(`${life}-`))
            )
          }
          const { hidden, skills } = (yield* hub.status)[0]!
          assert.strictEqual(skills.size, 0)
          assert.deepStrictEqual(new Set(hidden.map(({ reason }) => reason)), new Set(["excess"]))
          assert.isBelow(fs.statSync(file).size, 300_000)

          assert.isTrue(yield* hub.approve(hidden[7]!))
          assert.lengthOf(yield* Hub.skillNames, 1)
          server.change({ tools: [{ ...first!, description: "Says more" }, ...named(4).slice(7, 9)] })
          const later = yield* until(({ hidden }) => hidden.some(({ reason }) => reason === "changed"))
          assert.deepStrictEqual([...later.skills.keys()], [named(4)[7]!.name])
          assert.deepStrictEqual(
            later.hidden.map(({ reason, tool }) => [reason, tool]),
            [
              ["changed", first!.name],
              ["excess", named(4)[8]!.name]
            ]
          )
        }).pipe(Effect.provide(Hub.hub({ s: server.settings }).pipe(Layer.provide(pinned))))
      })
    )

    it.live("and hides the second of two tools with one name", () =>
      Effect.gen(function* () {
        const server = yield* Hub.scripted({
          tools: [Hub.tool("a", { description: "one" }), Hub.tool("a", { description: "two" })]
        })
        yield* Effect.gen(function* () {
          const skill = yield* Hub.skill("mcp_s__a")
          assert.strictEqual(skill.description, "one")
          const [status] = yield* (yield* McpHub.McpHub).status
          assert.deepStrictEqual(
            status?.hidden.map(({ reason }) => reason),
            ["repeated"]
          )
          assert.isFalse(yield* (yield* McpHub.McpHub).approve(status!.hidden[0]!))
        }).pipe(Effect.provide(Hub.hub({ s: server.settings })))
      })
    )
  })
})
