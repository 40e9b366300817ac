/**
 * Receives the progress that a server reports for calls.
 *
 * A call with a listener is sent with a token, which the server's reports name. Reports of other calls and malformed
 * reports are ignored.
 */

import type * as McpClient from "effect/ai/McpClient"
import type * as McpSchema from "effect/ai/McpSchema"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { isRecord } from "../../kit/json.ts"
import { shorten } from "../../kit/text.ts"

/** A report of a call. `total` is the final value of `progress`, if the server knows it. */
export type Progress = Omit<typeof Report.Type, "progressToken">

/** Receives the progress of the calls of a fiber. Undefined: progress is not requested. */
export const Listener = Context.Reference<((progress: Progress) => Effect.Effect<void>) | undefined>(
  "kernai/mcp/Listener",
  { defaultValue: () => undefined }
)

const Report = Schema.Struct({
  progressToken: Schema.String,
  progress: Schema.Finite,
  total: Schema.optionalKey(Schema.Finite),
  message: Schema.optionalKey(Schema.String)
})

const decode = Schema.decodeUnknownOption(Report)

/** The calls of a session that have a listener. */
export interface Calls {
  /** Sends calls with a token. */
  readonly over: (inner: McpClient.Transport) => McpClient.Transport
  /** Takes a notification of the server. */
  readonly receive: (method: string, params: unknown) => Effect.Effect<void>
  /** Returns true if any call has a listener. */
  readonly hasListener: () => boolean
}

export const make = (): Calls => {
  const listeners = new Map<string, (progress: Progress) => Effect.Effect<void>>()
  let calls = 0
  const receive = (method: string, params: unknown): Effect.Effect<void> => {
    const report = method === "notifications/progress" ? decode(params) : Option.none()
    if (Option.isNone(report)) return Effect.void
    const { progressToken, ...progress } = report.value
    const message = progress.message === undefined ? {} : { message: shorten(progress.message, longest) }
    return listeners.get(progressToken)?.({ ...progress, ...message }) ?? Effect.void
  }
  return {
    receive,
    over: (inner) => ({
      ...inner,
      request: (message, tool) =>
        Effect.flatMap(Listener, (listener) => {
          if (listener === undefined || message.method !== "tools/call") return inner.request(message, tool)
          const token = `call-${++calls}`
          listeners.set(token, listener)
          return Effect.ensuring(
            inner.request(withToken(message, token), tool),
            Effect.sync(() => listeners.delete(token))
          )
        })
    }),
    hasListener: () => listeners.size > 0
  }
}

const longest = 1_000

const withToken = (message: McpSchema.JsonRpcRequest, progressToken: string): McpSchema.JsonRpcRequest => {
  const meta = message.params?.["_meta"]
  return {
    ...message,
    params: { ...message.params, _meta: { ...(isRecord(meta) ? meta : {}), progressToken } }
  }
}
