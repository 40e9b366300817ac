/**
 * Reads the lists of a server page by page. effect's client follows and counts the pages of three lists. This module
 * also counts their bytes, and reads the resource templates.
 */

import type * as McpClient from "effect/ai/McpClient"
import { McpClientError, ProtocolError, TimeoutError } from "effect/ai/McpClientError"
import * as McpSchema from "effect/ai/McpSchema"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { isRecord, own } from "../../kit/json.ts"
import * as Handshake from "./handshake.ts"
import * as JsonRpc from "./jsonRpc.ts"

/** Receives the names of unusable entries, with the reason. */
export type LeaveOut = (list: string, names: ReadonlyArray<string>, why: string) => Effect.Effect<void>

/**
 * Creates a transport that fails a list of more than `limit` bytes, recognizes the last page and leaves out malformed
 * entries.
 */
export const bounded = (inner: McpClient.Transport, limit: number, leaveOut: LeaveOut): McpClient.Transport => {
  const sizes = new Map<string, number>()
  return {
    ...inner,
    request: (message, tool) => {
      const { method } = message
      if (!method.endsWith("/list")) return inner.request(message, tool)
      const cursor = message.params?.["cursor"]
      const before = cursor === undefined ? 0 : (sizes.get(method) ?? 0)
      return Effect.flatMap(inner.request(message, tool), (response) => {
        const size = before + JSON.stringify(response).length
        sizes.set(method, size)
        if (size > limit) return Effect.fail(JsonRpc.tooLarge(`${method} gave more than ${limit} bytes`))
        if (response.error !== undefined || !isRecord(response.result)) return Effect.succeed(response)
        const page = ended(response.result, cursor)
        return Effect.map(wellFormed(page, leaveOut), (result) => ({ ...response, result }))
      })
    }
  }
}

/** Removes malformed entries from a page, so that they do not hide the others. */
const wellFormed = Effect.fnUntraced(function* (page: Record<string, unknown>, leaveOut: LeaveOut) {
  const kept: Record<string, unknown> = { ...page }
  for (const [list, isEntry] of Object.entries(entries)) {
    const items = own(page, list)
    if (!Array.isArray(items)) continue
    const odd = items.filter((item: unknown) => !isEntry(item))
    if (odd.length === 0) continue
    kept[list] = items.filter((item: unknown) => isEntry(item))
    yield* leaveOut(list, odd.map(nameOf), "they are malformed")
  }
  return kept
})

const decodes = (schema: Schema.ConstraintDecoder<unknown>) => {
  const decode = Schema.decodeUnknownOption(schema)
  return (item: unknown): boolean => Option.isSome(decode(item))
}

const entries: Readonly<Record<string, (item: unknown) => boolean>> = {
  tools: decodes(McpSchema.Tool),
  resources: decodes(McpSchema.Resource),
  resourceTemplates: decodes(McpSchema.ResourceTemplate),
  prompts: decodes(McpSchema.Prompt)
}

const nameOf = (item: unknown): string => {
  const name = isRecord(item) ? own(item, "name") : undefined
  return typeof name === "string" ? name : "without a name"
}

/**
 * Removes the cursor from the last page. Some servers write null. Some write "", which may be a cursor: a server that
 * responds to it with "" again ignored it and sent the first page once more.
 */
const ended = (page: Record<string, unknown>, cursor: unknown): Record<string, unknown> => {
  const { nextCursor, ...rest } = page
  if (nextCursor === null) return rest
  if (nextCursor !== "" || cursor !== "") return page
  return Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, Array.isArray(value) ? [] : value]))
}

/** Reads all resource templates. Returns none if the server does not know the method. */
export const resourceTemplates = (
  transport: McpClient.Transport,
  timeout: Duration.Duration
): Effect.Effect<ReadonlyArray<McpSchema.ResourceTemplate>, McpClientError> =>
  Effect.gen(function* () {
    const items: Array<McpSchema.ResourceTemplate> = []
    let cursor: string | undefined
    for (let page = 0; page < maxPages; page++) {
      const { error, result } = yield* transport.request(
        requestOf(transport, "resources/templates/list", cursor === undefined ? {} : { cursor })
      )
      if (error?.code === McpSchema.METHOD_NOT_FOUND_ERROR_CODE) return []
      if (error !== undefined) return yield* answered(error)
      const decoded = decodeTemplates(result)
      if (Option.isNone(decoded)) return yield* JsonRpc.broken("the server's list of resource templates is malformed")
      items.push(...decoded.value.resourceTemplates)
      cursor = decoded.value.nextCursor
      if (cursor === undefined) return items
    }
    return yield* JsonRpc.tooLarge(`resources/templates/list gave more than ${maxPages} pages`)
  }).pipe(
    Effect.timeoutOrElse({
      duration: timeout,
      orElse: () => Effect.fail(new McpClientError({ reason: new TimeoutError({ operation: "resources discovery" }) }))
    })
  )

/** Sends a request that effect's client does not know, and returns its result. */
export const sent = (
  transport: McpClient.Transport,
  method: string,
  params: { readonly [key: string]: unknown },
  timeout: Duration.Duration
): Effect.Effect<unknown, McpClientError> =>
  Effect.flatMap(transport.request(requestOf(transport, method, params)), ({ error, result }) =>
    error === undefined ? Effect.succeed(result) : Effect.fail(answered(error))
  ).pipe(
    Effect.timeoutOrElse({
      duration: timeout,
      orElse: () => Effect.fail(new McpClientError({ reason: new TimeoutError({ operation: method }) }))
    })
  )

const requestOf = (
  transport: McpClient.Transport,
  method: string,
  params: { readonly [key: string]: unknown }
): McpSchema.JsonRpcRequest => ({
  jsonrpc: "2.0",
  // effect's client numbers its requests, so a text never collides with their ids.
  id: `own-${nextId++}`,
  method,
  params: { ...params, ...Handshake.requestMeta(transport.protocol.protocolVersion) }
})

const answered = ({ code, message: description }: { readonly code: number; readonly message: string }) =>
  new McpClientError({ reason: new ProtocolError({ code, description }) })

let nextId = 1
const maxPages = 100

const decodeTemplates = Schema.decodeUnknownOption(McpSchema.ListResourceTemplatesResult)
