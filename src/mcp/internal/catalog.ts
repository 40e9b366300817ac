/** Answers the `mcp` block from the servers of a hub. A list over all servers omits unavailable ones. */

import * as Effect from "effect/Effect"
import { shorten } from "../../kit/text.ts"
import { jsonObject, plain } from "../../kit/json.ts"
import { McpError } from "../../KernelError.ts"
import type { Limits } from "../../Limits.ts"
import type { Catalog, PromptEntry, ResourceEntry, ToolEntry } from "../McpProtocol.ts"
import * as Call from "./callTool.ts"
import * as Definition from "./definition.ts"
import type { Asked } from "./hubHost.ts"
import { type HubServer, type HubTool, reasons } from "./hubServer.ts"

export interface Source {
  /** The servers by name, in the order of the config. */
  readonly servers: ReadonlyMap<string, HubServer>
  /** Reads the list of a server again if it has changed. */
  readonly refresh: (server: HubServer) => Effect.Effect<void, McpError>
  readonly limits: Limits
  /** Returns the reason if the caller may not call a tool. */
  readonly refusal?: (server: string, tool: string) => string | undefined
  /** The channels through which the caller can be asked. */
  readonly asked?: Asked
}

export const make = (source: Source): Catalog => {
  const { asked = {}, limits, refusal = () => undefined, servers } = source
  const tools = (server: string | undefined) => gather(source, server, toolsOf(source))
  const resources = resourcesOf(limits)
  const prompts = promptsOf(limits)
  return {
    servers: Effect.succeed([...servers.keys()]),
    tools: (server) =>
      Effect.map(tools(server), (found) =>
        found
          .filter(({ server, tool }) => refusal(server.name, tool.tool.name) === undefined)
          .map(({ server, tool }) => toolEntry(server, tool, limits))
      ),
    resources: (server) => gather(source, server, resources),
    prompts: (server) => gather(source, server, prompts),
    callTool: Effect.fnUntraced(function* (name, input, server) {
      // The first server that has the tool, the same one about which the policy was asked.
      const found = (yield* tools(server)).find(({ tool }) => tool.tool.name === name)
      if (found === undefined) return yield* hiddenTool(source, name, server) ?? notFound("tool", name, server)
      const refused = refusal(found.server.name, name)
      if (refused === undefined) return yield* Call.callTool(found.server, found.tool, input, asked)
      const detail = `tool '${name}' ${refused}`
      return yield* new McpError({ server: found.server.name, reason: "not_allowed", detail })
    }),
    readResource: Effect.fnUntraced(function* (uri, server) {
      // An address is never sent to a server that did not offer it.
      const owner = server === undefined ? yield* ownerOf(source, uri) : servers.get(server)
      return owner === undefined ? yield* notFound("resource", uri, server) : yield* Call.readResource(owner, uri)
    }),
    getPrompt: Effect.fnUntraced(function* (name, input, server) {
      const entry = (yield* gather(source, server, prompts)).find((prompt) => prompt.name === name)
      const owner = servers.get(entry?.server ?? "")
      return owner === undefined ? yield* notFound("prompt", name, server) : yield* Call.getPrompt(owner, name, input)
    })
  }
}

const notFound = (kind: string, name: string, server: string | undefined) => {
  const detail = `${kind} not found: ${name}${server === undefined ? "" : ` (server=${server})`}`
  return new McpError({ server: server ?? "", reason: "not_found", detail })
}

const named = ({ servers }: Source, name: string | undefined): ReadonlyArray<HubServer> =>
  [...servers.values()].filter((server) => name === undefined || server.name === name)

/** Sends a request to one server, or to all available ones. */
const gather = <A>(
  source: Source,
  name: string | undefined,
  ask: (server: HubServer) => Effect.Effect<ReadonlyArray<A>, McpError>
): Effect.Effect<ReadonlyArray<A>, McpError> => {
  const askOne = (server: HubServer) => {
    if (name !== undefined) return ask(server)
    return server.problem === undefined ? Effect.orElseSucceed(ask(server), () => []) : Effect.succeed([])
  }
  return Effect.map(Effect.forEach(named(source, name), askOne, { concurrency: "unbounded" }), (lists) => lists.flat())
}

const toolsOf =
  ({ refresh }: Source) =>
  (server: HubServer) =>
    Effect.map(refresh(server), () => server.shown.map((tool) => ({ server, tool })))

const resourcesOf = ({ descriptionLength }: Limits) =>
  Effect.fnUntraced(function* (server: HubServer) {
    const { resourceTemplates, resources } = server.connection
    const templates = (yield* resourceTemplates).map((template) => ({ ...template, uri: template.uriTemplate }))
    return [...(yield* resources), ...templates].map(({ description, mimeType, name, uri }): ResourceEntry => ({
      uri,
      name,
      description: description === undefined ? null : shorten(description, descriptionLength),
      mimeType: mimeType ?? null,
      server: server.name
    }))
  })

const promptsOf =
  ({ descriptionLength }: Limits) =>
  (server: HubServer) =>
    Effect.map(server.connection.prompts, (prompts) =>
      prompts.map(({ arguments: input, description, name }): PromptEntry => ({
        name,
        description: description === undefined ? null : shorten(description, descriptionLength),
        arguments: input === undefined ? null : plain(input),
        server: server.name
      }))
    )

const toolEntry = (server: HubServer, { parts, tool }: HubTool, { descriptionLength }: Limits): ToolEntry => ({
  name: tool.name,
  description: tool.description === undefined ? null : shorten(tool.description, descriptionLength),
  server: server.name,
  // Computed on access: most readers of a list look for one tool of thousands, or read only names.
  get inputSchema() {
    return jsonObject(Definition.readable(parts["inputSchema"] ?? {}, descriptionLength))
  },
  get outputSchema() {
    return Definition.readable(parts["outputSchema"] ?? null, descriptionLength)
  },
  annotations: parts["annotations"] ?? null
})

const hiddenTool = (source: Source, name: string, server: string | undefined): McpError | undefined => {
  for (const owner of named(source, server)) {
    const hidden = owner.tools.find((tool) => tool.hidden !== undefined && tool.tool.name === name)?.hidden
    if (hidden === undefined) continue
    const detail = `the tool '${name}' of MCP server '${owner.name}' is hidden, ${reasons[hidden]}`
    return new McpError({ server: owner.name, reason: "not_found", detail })
  }
  return undefined
}

/** Returns the server that lists a resource or a template for it, or the only server that has resources. */
const ownerOf = Effect.fnUntraced(function* (source: Source, uri: string) {
  const entries = yield* gather(source, undefined, resourcesOf(source.limits))
  const found = entries.find((entry) => entry.uri === uri) ?? entries.find((entry) => matches(entry.uri, uri))
  if (found !== undefined) return source.servers.get(found.server ?? "")
  const able = named(source, undefined).filter(({ info }) => "resources" in (info?.capabilities ?? {}))
  return able.length === 1 ? able[0] : undefined
})

/** Returns true if a template may match an address: they agree up to the first variable. */
const matches = (template: string, uri: string): boolean => {
  const open = template.indexOf("{")
  return open > 0 && uri.startsWith(template.slice(0, open))
}
