/**
 * Lists of what a server has, page by page.
 *
 * effect's client follows pages and counts them; here their bytes are counted
 * too, and the list it does not know, of resource templates, is read.
 */

import type * as McpClient from "effect/ai/McpClient"
import { LimitError, McpClientError, TimeoutError } from "effect/ai/McpClientError"
import * as McpSchema from "effect/ai/McpSchema"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { isRecord } from "../../internal/base/json.ts"
import * as Exchange from "./jsonRpc.ts"
import * as Handshake from "./handshake.ts"

/** A transport that refuses a list larger than a limit, however many pages it has, and knows its end. */
export const bounded = (inner: McpClient.Transport, limit: number): McpClient.Transport => {
  const sizes = new Map<string, number>()
  return {
    ...inner,
    request: (message, tool) => {
      if (!message.method.endsWith("/list")) return inner.request(message, tool)
      const cursor = message.params?.["cursor"]
      const before = cursor === undefined ? 0 : (sizes.get(message.method) ?? 0)
      return Effect.flatMap(inner.request(message, tool), (response) => {
        const size = before + JSON.stringify(response).length
        sizes.set(message.method, size)
        if (size > limit) return Effect.fail(tooMuch(`${message.method} gave more than ${limit} bytes`))
        return Effect.succeed(
          response.error === undefined && isRecord(response.result)
            ? { ...response, result: ended(response.result, cursor) }
            : response
        )
      })
    }
  }
}

/**
 * A page as it says that none follows. Some write null. Some write "", which may be a cursor: who answers that with
 * "" again takes it for none, and gave the first page once more.
 */
const ended = (page: Record<string, unknown>, cursor: unknown): Record<string, unknown> => {
  const { nextCursor, ...rest } = page
  if (nextCursor === null) return rest
  return nextCursor === "" && cursor === ""
    ? Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, Array.isArray(value) ? [] : value]))
    : page
}

/** All resource templates. A server that knows no such list has none. */
export const resourceTemplates = (
  transport: McpClient.Transport,
  timeout: Duration.Duration
): Effect.Effect<ReadonlyArray<McpSchema.ResourceTemplate>, McpClientError> => {
  let nextId = 1
  return Effect.gen(function* () {
    const items: Array<McpSchema.ResourceTemplate> = []
    const cursors = new Set<string>()
    let cursor: string | undefined
    for (let page = 0; page < maxPages; page++) {
      const response = yield* transport.request({
        jsonrpc: "2.0",
        // effect's client counts its requests; a text can be no number of its.
        id: `templates-${nextId++}`,
        method: "resources/templates/list",
        params: {
          ...(cursor === undefined ? {} : { cursor }),
          ...Handshake.requestMeta(transport.protocol.protocolVersion)
        }
      })
      if (response.error !== undefined) {
        if (response.error.code === McpSchema.METHOD_NOT_FOUND_ERROR_CODE) return []
        return yield* Exchange.refused(response.error)
      }
      const result = decodeTemplates(response.result)
      if (Option.isNone(result)) return yield* Exchange.broken("the server's list of resource templates is malformed")
      items.push(...result.value.resourceTemplates)
      if (items.length > maxItems) return yield* tooMuch(`resources/templates/list gave more than ${maxItems} items`)
      cursor = result.value.nextCursor
      if (cursor === undefined) return items
      if (cursors.has(cursor)) return yield* tooMuch("resources/templates/list repeated a page")
      cursors.add(cursor)
    }
    return yield* tooMuch(`resources/templates/list gave more than ${maxPages} pages`)
  }).pipe(
    Effect.timeoutOrElse({
      duration: timeout,
      orElse: () => Effect.fail(new McpClientError({ reason: new TimeoutError({ operation: "resources discovery" }) }))
    })
  )
}

const maxPages = 100
const maxItems = 10_000

const decodeTemplates = Schema.decodeUnknownOption(McpSchema.ListResourceTemplatesResult)

const tooMuch = (description: string) => new McpClientError({ reason: new LimitError({ description }) })
