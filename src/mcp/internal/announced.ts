/**
 * The revisions of the protocol, with the capabilities that the server here has.
 *
 * effect's server announces completions, logging and changes of lists wherever a revision knows them. No completion is
 * offered here and no log is sent. Over HTTP, only the revision without a handshake has a stream for changes of lists.
 */

import * as McpProtocol from "effect/ai/McpProtocol"
import * as Effect from "effect/Effect"
import { isRecord } from "../../internal/base/json.ts"

/** All revisions, newest first, for a server over standard streams or over HTTP. */
export const protocols = (over: "stdio" | "http") => {
  const { v2024_11_05, v2025_03_26, v2025_06_18, v2025_11_25, v2026_07_28 } = McpProtocol
  const hasStream = over === "stdio"
  return [
    announcing(v2026_07_28, true),
    announcing(v2025_11_25, hasStream),
    announcing(v2025_06_18, hasStream),
    announcing(v2025_03_26, hasStream),
    announcing(v2024_11_05, hasStream)
  ] as const
}

const announcing = <A extends McpProtocol.ProtocolAdapter>(adapter: A, announcesChanges: boolean): A => {
  const narrowed = (result: unknown) => narrow(result, announcesChanges)
  return {
    ...adapter,
    installHandlers: (core: unknown, lifecycle: unknown, target: unknown) =>
      adapter.installHandlers(
        core,
        withMethod(
          lifecycle,
          "initialize",
          (initialize) =>
            (...given) =>
              Effect.map(initialize(...given), narrowed)
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

type Method = (...given: ReadonlyArray<unknown>) => Effect.Effect<unknown, unknown, unknown>

/** An object whose method is replaced, if it has one of this name. */
const withMethod = (owner: unknown, name: string, replace: (method: Method) => Method): unknown => {
  if (!isRecord(owner)) return owner
  const method = owner[name]
  return isMethod(method) ? { ...owner, [name]: replace(method) } : owner
}

const isMethod = (value: unknown): value is Method => typeof value === "function"

/** What a server answers to a handshake, without the capabilities that it lacks. */
const narrow = (result: unknown, announcesChanges: boolean): unknown => {
  if (!isRecord(result) || !isRecord(result["capabilities"])) return result
  const { completions: _, logging: __, tools, ...others } = result["capabilities"]
  const offered = isRecord(tools) && !announcesChanges ? { ...tools, listChanged: false } : tools
  return { ...result, capabilities: { ...others, ...(tools === undefined ? {} : { tools: offered }) } }
}
