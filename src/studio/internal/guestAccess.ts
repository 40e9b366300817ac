/** End users without a sign-in: each browser is a caller of its own, by a random cookie that no script can read. */

import * as Effect from "effect/Effect"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Redacted from "effect/Redacted"
import type { Authenticate } from "../../http/Access.ts"
import { Unauthorized } from "../../http/HttpProblem.ts"
import { sha256 } from "../../kit/sha256.ts"
import * as Secrets from "../../kit/secrets.ts"

const cookieName = "kernai-guest"

const secretIn = ({ cookies }: HttpServerRequest.HttpServerRequest): string | undefined =>
  /^[\w-]{43}$/.exec(cookies[cookieName] ?? "")?.[0]

/** The guest of a browser. The id is derived, so that nobody who reads a journal can pose as the guest. */
export const authenticate: Authenticate = Effect.gen(function* () {
  const secret = secretIn(yield* HttpServerRequest.HttpServerRequest)
  if (secret === undefined) return yield* new Unauthorized()
  return { id: `guest-${(yield* sha256(secret)).slice(0, 32)}` }
})

/**
 * Gives a browser its cookie unless it has one. A cookie for a page in the frame of another site must be secure; it is
 * kept apart for each site.
 */
export const welcome = (
  response: HttpServerResponse.HttpServerResponse,
  path: string,
  isFramed: boolean
): Effect.Effect<HttpServerResponse.HttpServerResponse, never, HttpServerRequest.HttpServerRequest> =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
    secretIn(request) !== undefined
      ? Effect.succeed(response)
      : Effect.map(Secrets.random, (secret) =>
          HttpServerResponse.setCookieUnsafe(response, cookieName, Redacted.value(secret), {
            httpOnly: true,
            path,
            maxAge: "400 days",
            ...(isFramed ? { sameSite: "none", secure: true, partitioned: true } : { sameSite: "lax" })
          })
        )
  )
