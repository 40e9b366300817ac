/**
 * Who may use the studio: a page that brought the token of this start. The token is exchanged for a cookie that no script
 * can read, and changes need a header that no form can send.
 */

import * as Effect from "effect/Effect"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as Redacted from "effect/Redacted"
import { createHash, randomBytes, timingSafeEqual } from "node:crypto"
import type { Authenticate, Caller } from "../../http/Access.ts"
import { Forbidden, Unauthorized } from "../../http/HttpProblem.ts"

/** The secrets of one start. */
export interface Secrets {
  /** The name of the cookie: two studios of one machine keep theirs apart. */
  readonly cookieName: string
  readonly cookie: Redacted.Redacted
  readonly isToken: (text: string) => boolean
  readonly authenticate: Authenticate
}

/** The header that every change carries. */
export const changeHeader = "x-kernai-studio"

/** The caller of the page. */
const caller: Caller = { id: "studio", isOperator: true }

/** A new secret of 256 bits. */
export const random = (): Redacted.Redacted => Redacted.make(randomBytes(32).toString("base64url"))

export const make = (token: Redacted.Redacted, readOnly: boolean): Secrets => {
  const cookie = random()
  const cookieName = `kernai-studio-${digest(Redacted.value(token)).toString("hex").slice(0, 8)}`
  return {
    cookie,
    cookieName,
    isToken: (text) => isSame(text, token),
    authenticate: Effect.flatMap(
      HttpServerRequest.HttpServerRequest,
      (request): Effect.Effect<Caller, Unauthorized | Forbidden> => {
        if (!isSame(request.cookies[cookieName] ?? "", cookie)) return Effect.fail(new Unauthorized())
        if (request.method === "GET") return Effect.succeed(caller)
        if (readOnly) return Effect.fail(new Forbidden({ detail: "this studio is read-only" }))
        return request.headers[changeHeader] === "1"
          ? Effect.succeed(caller)
          : Effect.fail(new Forbidden({ detail: `a change needs the header ${changeHeader}: 1` }))
      }
    )
  }
}

const digest = (text: string): Buffer => createHash("sha256").update(text).digest()

const isSame = (text: string, secret: Redacted.Redacted): boolean =>
  timingSafeEqual(digest(text), digest(Redacted.value(secret)))
