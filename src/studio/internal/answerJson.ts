import * as Effect from "effect/Effect"
import * as HttpServerResponse from "effect/http/HttpServerResponse"

/** Answers with a value as JSON that nobody keeps. */
export const json = (value: unknown) =>
  Effect.succeed(HttpServerResponse.jsonUnsafe(value, { headers: { "cache-control": "no-store" } }))
