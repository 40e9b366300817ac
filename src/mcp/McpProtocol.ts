/**
 * The language of the `mcp` protocol block: a closed set of methods, as JSON.
 *
 * A request is read, answered from a catalog and rendered. What is wrong with a
 * request is said in words that teach the right one (BP-175, BP-176). Nothing
 * here knows a connection: the catalog does.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Bounds from "../internal/base/bounds.ts"
import * as Content from "../Content.ts"
import type { Json } from "../internal/base/json.ts"
import { isRecord, own, parseJson } from "../internal/base/json.ts"
import { strip } from "../internal/base/text.ts"
import { McpError } from "../KernelError.ts"
import * as Definition from "./internal/definition.ts"
import * as Render from "./internal/renderResult.ts"

export type {
  /**
   * An answer for the model: contents, and whether the server calls them an error.
   *
   * @category models
   * @since 0.1.0
   */
  Rendered as Answer
} from "./internal/renderResult.ts"

/**
 * A tool of a server. `null` is what a server left out.
 *
 * @category models
 * @since 0.1.0
 */
export interface ToolEntry {
  readonly name: string
  readonly description: string | null
  readonly server: string | null
  readonly inputSchema: Json
  readonly outputSchema: Json
  readonly annotations: Json
}

/**
 * A resource of a server.
 *
 * @category models
 * @since 0.1.0
 */
export interface ResourceEntry {
  readonly uri: string
  readonly name: string | null
  readonly description: string | null
  readonly mimeType: string | null
  readonly server: string | null
}

/**
 * A prompt of a server.
 *
 * @category models
 * @since 0.1.0
 */
export interface PromptEntry {
  readonly name: string
  readonly description: string | null
  readonly arguments: Json
  readonly server: string | null
}

/**
 * A call of a tool as a request asks for it.
 *
 * @category models
 * @since 0.1.0
 */
export interface ToolCall {
  readonly name: string
  readonly server: string | undefined
  readonly input: Readonly<Record<string, unknown>>
}

/**
 * What requests are answered from. A server that is `undefined` means all of
 * them in a list, and the first that has it otherwise; an unknown one has nothing.
 *
 * @category models
 * @since 0.1.0
 */
export interface Catalog<out R = never> {
  readonly servers: Effect.Effect<ReadonlyArray<string>, McpError, R>
  readonly tools: (server: string | undefined) => Effect.Effect<ReadonlyArray<ToolEntry>, McpError, R>
  readonly resources: (server: string | undefined) => Effect.Effect<ReadonlyArray<ResourceEntry>, McpError, R>
  readonly prompts: (server: string | undefined) => Effect.Effect<ReadonlyArray<PromptEntry>, McpError, R>
  readonly callTool: (
    name: string,
    input: Readonly<Record<string, unknown>>,
    server: string | undefined
  ) => Effect.Effect<Render.Rendered, McpError, R>
  readonly readResource: (uri: string, server: string | undefined) => Effect.Effect<Render.Rendered, McpError, R>
  readonly getPrompt: (
    name: string,
    input: Readonly<Record<string, unknown>>,
    server: string | undefined
  ) => Effect.Effect<Render.Rendered, McpError, R>
}

/**
 * Renders whatever a server answered (BP-177, W-15).
 *
 * @category combinators
 * @since 0.1.0
 */
export const render: (value: unknown) => Render.Rendered = Render.render

/**
 * Renders what was read of a resource.
 *
 * @category combinators
 * @since 0.1.0
 */
export const renderResource: (value: unknown) => Render.Rendered = Render.resource

/**
 * Renders the messages of a prompt.
 *
 * @category combinators
 * @since 0.1.0
 */
export const renderPrompt: (value: unknown) => Render.Rendered = Render.prompt

/**
 * An answer as one text (BP-177): a line names each medium; data stands only where there is nothing else.
 *
 * @category combinators
 * @since 0.1.0
 */
export const textOf = ({ content }: Render.Rendered): string => {
  const shown = content.filter((part) => part.type !== "data")
  return (shown.length === 0 ? content : shown)
    .map((part) => {
      if (part.type === "error") return part.message
      return Content.isMedia(part) ? `[non-text content omitted: type=${part.type}]` : Content.toText(part)
    })
    .join("\n")
}

/**
 * Reads a request and answers it.
 *
 * @category combinators
 * @since 0.1.0
 */
export const answer = Effect.fnUntraced(function* <R>(catalog: Catalog<R>, text: string) {
  const request = yield* Effect.fromResult(parse(text, Bounds.jsonDepth))
  const { params } = request
  const server = scalar(params, "server")
  switch (request.method) {
    case "servers/list":
      return listed(yield* catalog.servers)
    case "tools/list":
      return listed(
        (yield* catalog.tools(server)).map(({ description, name, server }) => ({ name, description, server }))
      )
    case "tools/describe": {
      const name = yield* required(request, "name")
      const tool = (yield* catalog.tools(server)).find((tool) => tool.name === name)
      return tool === undefined ? yield* toolNotFound(name, server) : listed(description(tool))
    }
    case "tools/call":
      return yield* catalog.callTool(yield* required(request, "name"), record(params, "arguments"), server)
    case "resources/list":
      return listed((yield* catalog.resources(server)).map(resource))
    case "resources/read":
      return yield* catalog.readResource(yield* required(request, "uri"), server)
    case "prompts/list":
      return listed((yield* catalog.prompts(server)).map(prompt))
    case "prompts/get":
      return yield* catalog.getPrompt(yield* required(request, "name"), record(params, "arguments"), server)
    default:
      return yield* unknownMethod(catalog, request)
  }
})

/**
 * The call of a tool that a request is, if it is one.
 *
 * @category combinators
 * @since 0.1.0
 */
export const toolCallOf = (text: string): ToolCall | undefined => {
  // How deep a request may be is said where it is answered: what is answered must have been judged.
  const parsed = parse(text, Infinity)
  if (Result.isFailure(parsed) || parsed.success.method !== "tools/call") return undefined
  const { params } = parsed.success
  const name = scalar(params, "name")
  return name === undefined ? undefined : { name, server: scalar(params, "server"), input: record(params, "arguments") }
}

/**
 * The tool is there, but not for the agent that asks (BP-66, S-15).
 *
 * @category errors
 * @since 0.1.0
 */
export const toolRefused = (name: string, server: string, refusal: string): McpError =>
  new McpError({ server, reason: "not_allowed", detail: `tool '${name}' ${refusal}` })

/**
 * No server has a tool of this name (BP-175).
 *
 * @category errors
 * @since 0.1.0
 */
export const toolNotFound = (name: string, server: string | undefined): McpError =>
  new McpError({
    server: server ?? "",
    reason: "not_found",
    detail: `tool not found: ${name}${server === undefined ? "" : ` (server=${server})`}`
  })

interface Request {
  readonly method: string
  readonly params: Readonly<Record<string, unknown>>
}

const invalid = (detail: string) => new McpError({ server: "", reason: "invalid_request", detail })

const parse = (text: string, depth: number): Result.Result<Request, McpError> => {
  const stripped = strip(text)
  if (stripped === "") return Result.fail(invalid("empty MCP request"))
  const json = parseJson(stripped, depth)
  if (Result.isFailure(json)) return Result.fail(invalid(`invalid MCP request JSON: ${json.failure}`))
  if (!isRecord(json.success)) return Result.fail(invalid("MCP request must be a JSON object"))
  const method = own(json.success, "method")
  if (method === undefined || method === null || method === "")
    return Result.fail(invalid("MCP request missing method"))
  return Result.succeed({ method: word(method), params: record(json.success, "params") })
}

const record = (from: Readonly<Record<string, unknown>>, key: string): Readonly<Record<string, unknown>> => {
  const value = own(from, key)
  return isRecord(value) ? value : {}
}

const scalar = (from: Readonly<Record<string, unknown>>, key: string): string | undefined => {
  const value = own(from, key)
  return value === undefined || value === null || value === "" ? undefined : word(value)
}

/** A value where a word belongs; an object of the model may hold a `toString` of its own. */
const word = (value: unknown): string => (typeof value === "object" ? JSON.stringify(value) : String(value))

const required = ({ method, params }: Request, key: string): Effect.Effect<string, McpError> => {
  const value = scalar(params, key)
  return value === undefined ? Effect.fail(invalid(`${method} requires params.${key}`)) : Effect.succeed(value)
}

// A model that writes the name of a tool where the method stands has understood everything but the envelope.
const unknownMethod = Effect.fnUntraced(function* <R>(catalog: Catalog<R>, { method, params }: Request) {
  const short = `unknown MCP method: ${method}`
  const tools = yield* Effect.orElseSucceed(catalog.tools(undefined), () => [])
  const tool = tools.find((tool) => tool.name === method)
  if (tool === undefined) return yield* invalid(short)
  const input = Object.fromEntries(Object.entries(params).filter(([key]) => key !== "server" && key !== "name"))
  const right = JSON.stringify({
    method: "tools/call",
    params: { server: tool.server, name: method, arguments: input }
  })
  return yield* invalid(`${short}. '${method}' looks like a tool name. To call that tool, write: ${right}`)
})

const listed = (value: unknown): Render.Rendered => ({
  content: [Content.text(Definition.json(value))],
  isError: false
})

const description = (tool: ToolEntry) =>
  withoutNulls({
    name: tool.name,
    description: tool.description,
    server: tool.server,
    input_schema: tool.inputSchema,
    output_schema: tool.outputSchema,
    annotations: tool.annotations
  })

const resource = (entry: ResourceEntry) =>
  withoutNulls({
    uri: entry.uri,
    name: entry.name,
    description: entry.description,
    mime_type: entry.mimeType,
    server: entry.server
  })

const prompt = (entry: PromptEntry) =>
  withoutNulls({
    name: entry.name,
    description: entry.description,
    arguments: entry.arguments,
    server: entry.server
  })

const withoutNulls = (fields: { readonly [key: string]: Json }) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null))
