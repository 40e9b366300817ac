/**
 * The sessions of an HTTP server of ours, of which there are never very many.
 *
 * The server below keeps each until its client ends it, and most clients go
 * without a word. So the one that was used longest ago ends: who comes back to
 * it is told that it is gone, and begins another.
 */

import * as Effect from "effect/Effect"
import * as HttpEffect from "effect/http/HttpEffect"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import type { HttpServerResponse } from "effect/http/HttpServerResponse"

/** An app that ends sessions beyond so many, but none that is in use. `url` is where they are ended. */
export const bounded = <E, R>(
  app: Effect.Effect<HttpServerResponse, E, R>,
  url: string,
  limit: number
): Effect.Effect<HttpServerResponse, E, R | HttpServerRequest.HttpServerRequest> => {
  /** The requests of each that are under way; the one that was used last is the last. */
  const sessions = new Map<string, number>()
  const use = (id: string, change: number) => {
    const requests = sessions.get(id)
    sessions.delete(id)
    if (requests !== undefined) sessions.set(id, requests + change)
  }

  // The server names a new session only as its answer leaves.
  const note = HttpEffect.appendPreResponseHandler((_, response) => {
    const given = response.headers[header]
    if (given !== undefined) sessions.set(given, sessions.get(given) ?? 0)
    return Effect.succeed(response)
  })
  const end = (id: string) => {
    sessions.delete(id)
    const request = HttpServerRequest.fromWeb(new Request(url, { method: "DELETE", headers: { [header]: id } }))
    return Effect.ignoreCause(Effect.provideService(app, HttpServerRequest.HttpServerRequest, request))
  }
  const endOldest = Effect.suspend(() => {
    if (sessions.size > limit) for (const [id, requests] of sessions) if (requests === 0) return end(id)
    return Effect.void
  })
  const answer = Effect.tap(app, note)

  return Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers }) => {
    const id = headers[header]
    if (id === undefined) return Effect.andThen(endOldest, answer)
    return Effect.acquireUseRelease(
      Effect.sync(() => use(id, 1)),
      () => answer,
      () => Effect.sync(() => use(id, -1))
    )
  })
}

const header = "mcp-session-id"
