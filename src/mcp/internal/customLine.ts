/**
 * A server behind a transport of the application: JSON-RPC messages as texts over a channel.
 */

import type { McpClientError } from "effect/ai/McpClientError"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Bounds from "../../kit/bounds.ts"
import { Limits } from "../../Limits.ts"
import type { CustomServer } from "../McpConfig.ts"
import * as JsonRpc from "./jsonRpc.ts"

/** Opens a connection until the scope closes. */
export const open = Effect.fnUntraced(function* (
  server: CustomServer,
  receivers: JsonRpc.Receivers
): Effect.fn.Return<JsonRpc.Line, McpClientError, Scope.Scope> {
  const limits = yield* Limits
  // The application's own failure stays out of messages, since it may hold secrets.
  const channel = yield* Effect.mapError(server.open, (cause) => JsonRpc.lost("the transport cannot be opened", cause))
  const line = JsonRpc.make({
    send: (text) => Effect.mapError(channel.send(text), (cause) => JsonRpc.lost("a message was not sent", cause)),
    receivers,
    limits
  })
  const receive = (text: string) =>
    text.length > Bounds.frameLength ? Effect.fail(JsonRpc.frameTooLong) : line.receive(text)
  yield* channel.received.pipe(
    Stream.mapError((cause) => JsonRpc.lost("the transport broke", cause)),
    Stream.runForEach(receive),
    Effect.andThen(Effect.fail(JsonRpc.lost("the transport ended"))),
    Effect.catch(line.close),
    Effect.forkScoped
  )
  yield* Effect.addFinalizer(() => line.close(JsonRpc.lost("the connection was closed")))
  return line
})
