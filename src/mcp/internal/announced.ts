/**
 * The revisions of the protocol, with the capabilities of this server.
 *
 * effect's server announces completions and logging in every revision that has them, but here only a server with
 * registrations of its own offers them. Over HTTP it has no subscriptions to resources and no stream for changes, which
 * `ServerStream` adds.
 */

import * as McpProtocol from "effect/ai/McpProtocol"
import * as Effect from "effect/Effect"
import { isRecord } from "../../kit/json.ts"
import type { ServerStream } from "./serverStream.ts"

/** The features of a server besides tools. */
interface Offered {
  /** Whether the application registered prompts, resources, completions or logs. */
  readonly hasMore: boolean
  /** The stream of an HTTP server. Undefined over standard streams. */
  readonly stream: ServerStream | undefined
}

/** All revisions, newest first. */
export const protocols = (offered: Offered) => {
  const { v2024_11_05, v2025_03_26, v2025_06_18, v2025_11_25, v2026_07_28 } = McpProtocol
  return [
    announcing(v2026_07_28, { ...offered, stream: undefined }),
    announcing(v2025_11_25, offered),
    announcing(v2025_06_18, offered),
    announcing(v2025_03_26, offered),
    announcing(v2024_11_05, offered)
  ] as const
}

const announcing = <A extends McpProtocol.ProtocolAdapter>(adapter: A, offered: Offered): A => {
  const narrowed = (result: unknown) => narrow(result, offered)
  return {
    ...adapter,
    installHandlers: (core: unknown, lifecycle: unknown, target: unknown) =>
      adapter.installHandlers(
        core,
        subscribing(
          withMethod(
            lifecycle,
            "initialize",
            (initialize) =>
              (...given) =>
                Effect.map(initialize(...given), narrowed)
          ),
          offered.stream
        ),
        withMethod(
          target,
          "install",
          (install) => (protocol, group, handlers) =>
            install(
              protocol,
              group,
              withMethod(
                handlers,
                "server/discover",
                (discover) =>
                  (...given) =>
                    Effect.map(discover(...given), narrowed)
              )
            )
        )
      )
  }
}

/** Routes the subscriptions of HTTP sessions to their stream. */
const subscribing = (lifecycle: unknown, stream: ServerStream | undefined): unknown => {
  if (stream === undefined) return lifecycle
  const subscribed = withMethod(lifecycle, "subscribe", (subscribe) => (uri, client, headers) => {
    const session = sessionOf(headers)
    const isKept = typeof uri === "string" && session !== undefined && stream.subscribe(session, uri)
    return isKept ? Effect.void : subscribe(uri, client, headers)
  })
  return withMethod(subscribed, "unsubscribe", (unsubscribe) => (uri, client, headers) => {
    const session = sessionOf(headers)
    if (typeof uri !== "string" || session === undefined) return unsubscribe(uri, client, headers)
    return Effect.sync(() => stream.unsubscribe(session, uri))
  })
}

const sessionOf = (headers: unknown): string | undefined => {
  const id = isRecord(headers) ? headers["mcp-session-id"] : undefined
  return typeof id === "string" ? id : undefined
}

type Method = (...given: ReadonlyArray<unknown>) => Effect.Effect<unknown, unknown, unknown>

/** Returns an object whose method of this name is replaced, if it has one. */
const withMethod = (owner: unknown, name: string, replace: (method: Method) => Method): unknown => {
  if (!isRecord(owner)) return owner
  const method = owner[name]
  return isMethod(method) ? { ...owner, [name]: replace(method) } : owner
}

const isMethod = (value: unknown): value is Method => typeof value === "function"

/** Removes capabilities that the server lacks from the result of a handshake. */
const narrow = (result: unknown, { hasMore, stream }: Offered): unknown => {
  if (!isRecord(result) || !isRecord(result["capabilities"])) return result
  const { completions, logging, resources, ...others } = result["capabilities"]
  const more = hasMore ? { ...(completions ? { completions } : {}), ...(logging ? { logging } : {}) } : {}
  const known = isRecord(resources) && stream !== undefined ? { ...resources, subscribe: true } : resources
  return { ...result, capabilities: { ...others, ...more, ...(known === undefined ? {} : { resources: known }) } }
}
