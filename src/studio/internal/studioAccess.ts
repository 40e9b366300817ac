/**
 * Access to the studio: a page needs the token of this start. The token is exchanged for a cookie that no script can
 * read, and changes need a header that no form can send.
 */

import * as Effect from "effect/Effect"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as Redacted from "effect/Redacted"
import { createHash, randomBytes } from "node:crypto"
import { isSame } from "../../kit/secrets.ts"
import type { Authenticate, Caller } from "../../http/Access.ts"
import { Forbidden, Invalid, Unauthorized } from "../../http/HttpProblem.ts"

/** The secrets of one start. */
export interface Secrets {
  /** The name of the cookie, different for two studios on one machine. */
  readonly cookieName: string
  readonly cookie: Redacted.Redacted
  readonly isToken: (text: string) => Effect.Effect<boolean>
  readonly authenticate: Authenticate
}

/** The header that every change needs. */
const changeHeader = "x-kernai-studio"

/** The header with the name of the person at the page, percent-encoded. */
const personHeader = "x-kernai-person"

/** The caller of the page. */
const caller: Caller = { id: "studio", isOperator: true }

/** Adds the name that a person gave. A name has up to 60 letters, digits, spaces and `. ' @ _ -`, so it cannot deceive. */
const named = (encoded: string | undefined): Effect.Effect<Caller, Invalid> => {
  if (encoded === undefined) return Effect.succeed(caller)
  const name = decoded(encoded)
  return name !== undefined && isPerson.test(name)
    ? Effect.succeed({ ...caller, name })
    : Effect.fail(new Invalid({ detail: "the name of a person has 1 to 60 letters, digits, spaces and . ' @ _ -" }))
}

const isPerson = /^[\p{L}\p{N}][\p{L}\p{M}\p{N} .'@_-]{0,59}$/u

const decoded = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

const digestOf = (text: string, encoding: "hex" | "base64url"): string =>
  createHash("sha256").update(text).digest(encoding)

/** Creates a secret of 256 random bits. */
export const random = (): Redacted.Redacted => Redacted.make(randomBytes(32).toString("base64url"))

export const make = (token: Redacted.Redacted, readOnly: boolean): Secrets => {
  // Derived from the token, so that sessions outlive a restart with the same one.
  const cookie = Redacted.make(digestOf(`session ${Redacted.value(token)}`, "base64url"))
  const cookieName = `kernai-studio-${digestOf(Redacted.value(token), "hex").slice(0, 8)}`
  return {
    cookie,
    cookieName,
    isToken: (text) => isSame(text, token),
    authenticate: Effect.gen(function* () {
      const request = yield* HttpServerRequest.HttpServerRequest
      if (!(yield* isSame(request.cookies[cookieName] ?? "", cookie))) return yield* new Unauthorized()
      if (request.method === "GET") return caller
      if (readOnly) return yield* new Forbidden({ detail: "this studio is read-only" })
      if (request.headers[changeHeader] === "1") return yield* named(request.headers[personHeader])
      return yield* new Forbidden({ detail: `a change needs the header ${changeHeader}: 1` })
    })
  }
}
