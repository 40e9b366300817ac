/** Registers the block type `mcp`, which reaches everything the servers offer. */

import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Block from "../../Block.ts"
import { jsonObject } from "../../kit/json.ts"
import { visible } from "../../kit/text.ts"
import * as Protocol from "../../Protocol.ts"
import { ProtocolRegistry } from "../../ProtocolRegistry.ts"
import * as McpProtocol from "../McpProtocol.ts"
import * as Call from "./callTool.ts"
import * as Catalog from "./catalog.ts"
import type { HubServer } from "./hubServer.ts"
import * as Names from "./toolNames.ts"
import type { ToolSkills } from "./toolSkills.ts"

/**
 * Registers the block until the scope closes. Without `nameOf`, tools have no skills, and the block reaches all of
 * them.
 */
export const register = Effect.fnUntraced(function* (source: Catalog.Source, nameOf: ToolSkills["nameOf"] | undefined) {
  const registry = yield* ProtocolRegistry
  const servers = [...source.servers.values()]
  const { limits } = source
  const catalogFor = (scope: Protocol.ProtocolScope) => {
    const asking = { ...source, asked: scope }
    return Catalog.make(
      nameOf === undefined
        ? asking
        : { ...asking, refusal: (server, tool) => scope.refusal(nameOf(server, tool) ?? "") }
    )
  }
  const protocol = Protocol.make("mcp", {
    documentation: documentation(servers.map(({ name }) => name)),
    // A request may be for any server.
    timeout: servers.reduce((most, server) => Duration.max(most, server.timeout(limits)), limits.cleanUpTimeout),
    handle: (block, scope) => Effect.flatMap(McpProtocol.answer(catalogFor(scope), block.content), Call.contentOf("")),
    // The skill whose rules apply to the call of a tool.
    skillOf: ({ content }) => {
      const call = McpProtocol.toolCallOf(content)
      if (call === undefined || nameOf === undefined) return undefined
      const { input, name: tool, server } = call
      const isAsked = (owner: HubServer) => (server === undefined ? owner.problem === undefined : owner.name === server)
      const owner = servers.find((owner) => isAsked(owner) && owner.shown.some((shown) => shown.tool.name === tool))
      // A tool that is not known yet is judged by the name it would have.
      const name = owner === undefined ? Names.plainly({ server: server ?? "", tool }) : nameOf(owner.name, tool)
      return name === undefined ? undefined : { name, input: jsonObject(input) }
    }
  })
  yield* Effect.catchTag(registry.register(protocol), "DefinitionInvalid", Effect.die)
})

const documentation = (servers: ReadonlyArray<string>): string =>
  `Reaches MCP servers: ${servers.map((name) => Block.escape(visible(name))).join(", ")}. Write one JSON object with a method and its params into the block:

<block type="mcp">{"method": "tools/list", "params": {"server": "NAME"}}</block>

Methods:
- servers/list: the names of the servers.
- tools/list: what can be called. params: server (all servers when left out).
- tools/describe: the input of one tool. params: name, server?
- tools/call: calls a tool. params: name, arguments?, server?
- resources/list: what can be read; an address with {braces} is a pattern to be filled in. params: server?
- resources/read: reads one. params: uri, server?
- prompts/list: the prompts there are. params: server?
- prompts/get: the messages of one. params: name, arguments?, server?

The answer comes as a result block named mcp; what went wrong comes as an error block. The name of a tool is not a method: put it into the params of tools/call. Ask tools/describe before you call a tool for the first time.`
