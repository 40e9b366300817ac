/**
 * Answers the `mcp` protocol block: a fixed set of methods, as JSON. The error of a wrong request shows the right one.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Strings from "effect/String"
import * as Content from "../Content.ts"
import * as Bounds from "../kit/bounds.ts"
import { strip } from "../kit/text.ts"
import { isRecord, type Json, own, parseJson } from "../kit/json.ts"
import { McpError } from "../KernelError.ts"
import * as Definition from "./internal/definition.ts"
import * as Render from "./internal/renderResult.ts"

/**
 * An answer for the model.
 *
 * @category models
 * @since 0.1.0
 */
export interface Answer {
  readonly content: ReadonlyArray<Content.Content>
  /** Whether the server marks the answer as an error. */
  readonly isError: boolean
}

/**
 * A tool of a server. Omitted values are null.
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
 * A request to call a tool.
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
 * Answers requests. A list is of one server, or of all if `server` is undefined; other requests go to the first server
 * that has the requested tool, resource or prompt. An unknown server has none.
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
    input: ToolCall["input"],
    server: string | undefined
  ) => Effect.Effect<Answer, McpError, R>
  readonly readResource: (uri: string, server: string | undefined) => Effect.Effect<Answer, McpError, R>
  readonly getPrompt: (
    name: string,
    input: ToolCall["input"],
    server: string | undefined
  ) => Effect.Effect<Answer, McpError, R>
}

/**
 * Renders the result of a tool call, or any other value.
 *
 * @category rendering
 * @since 0.1.0
 */
export const render: (value: unknown) => Answer = Render.render

/**
 * Renders the contents of a resource.
 *
 * @category rendering
 * @since 0.1.0
 */
export const renderResource: (value: unknown) => Answer = Render.resource

/**
 * Renders the messages of a prompt.
 *
 * @category rendering
 * @since 0.1.0
 */
export const renderPrompt: (value: unknown) => Answer = Render.prompt

/**
 * Returns an answer as one text, with a line for each medium. Data is included only if there is nothing else.
 *
 * @category rendering
 * @since 0.1.0
 */
export const textOf = ({ content }: Answer): string => {
  const shown = content.filter((part) => part.type !== "data")
  return (shown.length === 0 ? content : shown)
    .map((part) => {
      if (part.type === "error") return part.message
      return Content.isMedia(part) ? `[non-text content omitted: type=${part.type}]` : Content.toText(part)
    })
    .join("\n")
}

/**
 * Answers a request. Fails with a sentence about the problem if the request is wrong.
 *
 * @category running
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
      if (tool !== undefined) return listed(wire(tool))
      const detail = `tool not found: ${name}${server === undefined ? "" : ` (server=${server})`}`
      return yield* new McpError({ server: server ?? "", reason: "not_found", detail })
    }
    case "tools/call":
      return yield* catalog.callTool(yield* required(request, "name"), record(params, "arguments"), server)
    case "resources/list":
      return listed((yield* catalog.resources(server)).map(wire))
    case "resources/read":
      return yield* catalog.readResource(yield* required(request, "uri"), server)
    case "prompts/list":
      return listed((yield* catalog.prompts(server)).map(wire))
    case "prompts/get":
      return yield* catalog.getPrompt(yield* required(request, "name"), record(params, "arguments"), server)
    default:
      return yield* unknownMethod(catalog, request)
  }
})

/**
 * Returns the tool call in a request, or undefined for another request.
 *
 * @category parsing
 * @since 0.1.0
 */
export const toolCallOf = (text: string): ToolCall | undefined => {
  // Parsed without the depth limit of `answer`: a policy must see every call that may be answered.
  const parsed = parse(text, Infinity)
  if (Result.isFailure(parsed) || parsed.success.method !== "tools/call") return undefined
  const { params } = parsed.success
  const name = scalar(params, "name")
  return name === undefined ? undefined : { name, server: scalar(params, "server"), input: record(params, "arguments") }
}

interface Request {
  readonly method: string
  readonly params: Fields
}

type Fields = Readonly<Record<string, unknown>>

const invalid = (detail: string) => new McpError({ server: "", reason: "invalid_request", detail })

const parse = (text: string, depth: number): Result.Result<Request, McpError> => {
  const stripped = strip(text)
  if (stripped === "") return Result.fail(invalid("empty MCP request"))
  const json = parseJson(stripped, depth)
  if (Result.isFailure(json)) return Result.fail(invalid(`invalid MCP request JSON: ${json.failure}`))
  if (!isRecord(json.success)) return Result.fail(invalid("MCP request must be a JSON object"))
  const method = scalar(json.success, "method")
  if (method === undefined) return Result.fail(invalid("MCP request missing method"))
  return Result.succeed({ method, params: record(json.success, "params") })
}

const record = (from: Fields, key: string): Fields => {
  const value = own(from, key)
  return isRecord(value) ? value : {}
}

/** Returns a value as text. An object becomes JSON, since it may have a `toString` of its own. */
const scalar = (from: Fields, key: string): string | undefined => {
  const value = own(from, key)
  if (value === undefined || value === null || value === "") return undefined
  return typeof value === "object" ? JSON.stringify(value) : String(value)
}

const required = ({ method, params }: Request, key: string): Effect.Effect<string, McpError> => {
  const value = scalar(params, key)
  return value === undefined ? Effect.fail(invalid(`${method} requires params.${key}`)) : Effect.succeed(value)
}

/** Returns an error that shows the right call if the method is the name of a tool. */
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

const listed = (value: unknown): Answer => ({ content: [Content.text(Definition.json(value))], isError: false })

/** Encodes an entry without the values that its server omitted. */
const wire = (entry: ToolEntry | ResourceEntry | PromptEntry) =>
  Object.fromEntries(
    Object.entries(entry).flatMap(([key, value]) => (value === null ? [] : [[Strings.camelToSnake(key), value]]))
  )
