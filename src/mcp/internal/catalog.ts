/**
 * What the `mcp` block is answered from: the servers of a hub.
 *
 * A list over all servers leaves out those that are away; one server asked by
 * name says why it cannot answer.
 */

import * as Effect from "effect/Effect"
import { shorten } from "../../internal/base/text.ts"
import { jsonObject, plain } from "../../internal/base/json.ts"
import { McpError } from "../../KernelError.ts"
import type { Limits } from "../../Limits.ts"
import type { Catalog, PromptEntry, ResourceEntry, ToolEntry } from "../McpProtocol.ts"
import { toolNotFound, toolRefused } from "../McpProtocol.ts"
import * as Call from "./callTool.ts"
import * as Definition from "./definition.ts"
import { reasons, type Station, type StationTool } from "./mcpServer.ts"

/** Why a tool of a server may not be called by whoever asks, if it may not. */
export type Refusal = (server: string, tool: string) => string | undefined

/** Makes the catalog of some stations, in their order. `refresh` reads a station's list again if it changed. */
export const make = (
  stations: ReadonlyMap<string, Station>,
  refresh: (station: Station) => Effect.Effect<void, McpError>,
  limits: Limits,
  refusal: Refusal = () => undefined
): Catalog => {
  const all = [...stations.values()]

  const asked = (server: string | undefined): ReadonlyArray<Station> => {
    if (server === undefined) return all
    const station = stations.get(server)
    return station === undefined ? [] : [station]
  }

  /** Asks one server, or all that are there. */
  const gather = <A>(
    server: string | undefined,
    ask: (station: Station) => Effect.Effect<ReadonlyArray<A>, McpError>
  ): Effect.Effect<ReadonlyArray<A>, McpError> =>
    Effect.map(
      Effect.forEach(
        asked(server),
        (station) => {
          if (server !== undefined) return ask(station)
          return station.problem === undefined ? Effect.orElseSucceed(ask(station), () => []) : Effect.succeed([])
        },
        { concurrency: "unbounded" }
      ),
      (lists) => lists.flat()
    )

  const toolsOf = (station: Station) =>
    Effect.map(refresh(station), () => station.shown.map((tool) => ({ station, tool })))

  const resourcesOf = Effect.fnUntraced(function* (station: Station) {
    const resources = yield* station.connection.resources
    const templates = yield* station.connection.resourceTemplates
    return [
      ...resources.map((resource): ResourceEntry => entryOf(station, resource.uri, resource)),
      ...templates.map((template): ResourceEntry => entryOf(station, template.uriTemplate, template))
    ]
  })

  const entryOf = (
    station: Station,
    uri: string,
    about: { readonly name: string; readonly description?: string | undefined; readonly mimeType?: string | undefined }
  ): ResourceEntry => ({
    uri,
    name: about.name,
    description: short(about.description),
    mimeType: about.mimeType ?? null,
    server: station.name
  })

  const promptsOf = (station: Station) =>
    Effect.map(station.connection.prompts, (prompts) =>
      prompts.map((prompt): PromptEntry => ({
        name: prompt.name,
        description: short(prompt.description),
        arguments: prompt.arguments === undefined ? null : plain(prompt.arguments),
        server: station.name
      }))
    )

  const short = (description: string | undefined): string | null =>
    description === undefined ? null : shorten(description, limits.descriptionLength)

  const toolEntry = (station: Station, { parts, tool }: StationTool): ToolEntry => ({
    name: tool.name,
    description: short(tool.description),
    server: station.name,
    // Most who ask for tools look for one of thousands, or read no more than their names.
    get inputSchema() {
      return jsonObject(Definition.readable(parts["inputSchema"] ?? {}, limits.descriptionLength))
    },
    get outputSchema() {
      return Definition.readable(parts["outputSchema"] ?? null, limits.descriptionLength)
    },
    annotations: parts["annotations"] ?? null
  })

  /** The server that lists a resource, or a template for it; where only one has resources, that one. */
  const holder = Effect.fnUntraced(function* (uri: string) {
    const entries = yield* gather(undefined, resourcesOf)
    const found = entries.find((entry) => entry.uri === uri) ?? entries.find((entry) => matches(entry.uri, uri))
    if (found !== undefined) return stations.get(found.server ?? "")
    const able = all.filter((station) => "resources" in (station.info?.capabilities ?? {}))
    return able.length === 1 ? able[0] : undefined
  })

  return {
    servers: Effect.succeed([...stations.keys()]),
    tools: (server) =>
      Effect.map(gather(server, toolsOf), (found) =>
        found
          .filter(({ station, tool }) => refusal(station.name, tool.tool.name) === undefined)
          .map(({ station, tool }) => toolEntry(station, tool))
      ),
    resources: (server) => gather(server, resourcesOf),
    prompts: (server) => gather(server, promptsOf),
    callTool: Effect.fnUntraced(function* (name, input, server) {
      const [found] = (yield* gather(server, toolsOf)).filter(({ tool }) => tool.tool.name === name)
      if (found !== undefined) {
        // As the policy was asked: the first that has it, and no other in its place.
        const refused = refusal(found.station.name, name)
        return refused === undefined
          ? yield* Call.callTool(found.station, found.tool, input)
          : yield* toolRefused(name, found.station.name, refused)
      }
      for (const station of asked(server)) {
        const hidden = station.tools.find((tool) => tool.hidden !== undefined && tool.tool.name === name)
        if (hidden?.hidden === undefined) continue
        return yield* new McpError({
          server: station.name,
          reason: "not_found",
          detail: `the tool '${name}' of MCP server '${station.name}' is hidden, ${reasons[hidden.hidden]}`
        })
      }
      return yield* toolNotFound(name, server)
    }),
    readResource: Effect.fnUntraced(function* (uri, server) {
      // No address is shown to a server that did not offer it.
      const station = server === undefined ? yield* holder(uri) : stations.get(server)
      return station === undefined ? yield* missing("resource", uri, server) : yield* Call.readResource(station, uri)
    }),
    getPrompt: Effect.fnUntraced(function* (name, input, server) {
      const entry = (yield* gather(server, promptsOf)).find((prompt) => prompt.name === name)
      const station = stations.get(entry?.server ?? "")
      return station === undefined
        ? yield* missing("prompt", name, server)
        : yield* Call.getPrompt(station, name, input)
    })
  }
}

const missing = (kind: string, name: string, server: string | undefined) =>
  new McpError({
    server: server ?? "",
    reason: "not_found",
    detail: `${kind} not found: ${name}${server === undefined ? "" : ` (server=${server})`}`
  })

/** Could a template stand for an address? What is before its first variable is the same in both. */
const matches = (template: string, uri: string): boolean => {
  const open = template.indexOf("{")
  return open > 0 && uri.startsWith(template.slice(0, open))
}
