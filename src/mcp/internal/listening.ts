/**
 * An HTTP server of Node for the time of a scope, which leaves nothing behind: neither a port that listens, nor a
 * connection of somebody who asked nothing.
 */

import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as Effect from "effect/Effect"
import { createServer } from "node:http"

/** Listens until the scope closes. Given up as it begins to, it would do so for ever. */
export const listening = (options: Parameters<typeof NodeHttpServer.make>[1]) =>
  Effect.uninterruptible(
    Effect.suspend(() => {
      const server = createServer()
      // Who was answered is gone by then. A server that closes waits for ever for the rest of a request.
      const letGo = Effect.addFinalizer(() => Effect.sync(() => server.closeAllConnections()))
      return Effect.tap(
        NodeHttpServer.make(() => server, options),
        letGo
      )
    })
  )
