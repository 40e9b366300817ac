/**
 * Manages the grant of one MCP server: the one in use here, and the stored one that other connections and processes
 * share.
 */

import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Semaphore from "effect/Semaphore"
import type { McpError } from "../../KernelError.ts"
import type { HttpServer } from "../McpConfig.ts"
import type { Grant, TokenStore } from "../TokenStore.ts"
import * as ClientGrant from "./clientGrant.ts"
import { type AuthorizationServer, discover } from "./discovery.ts"
import { lacked as lackedBy, scopesOf, union } from "./requestFailure.ts"
import { askForTokens, readTokens, signIn } from "./signIn.ts"

/** Whether a person may be asked for further scopes. */
export const Attended: Context.Reference<boolean> = Context.Reference<boolean>("kernai/mcp/Attended", {
  defaultValue: () => true
})

export interface Authorization {
  readonly server: HttpServer
  readonly client: HttpClient.HttpClient
  readonly store: TokenStore["Service"]
  /** Held while the grant is read, renewed, stored or deleted. */
  readonly lock: Semaphore.Semaphore
  readonly show: ((url: string) => Effect.Effect<unknown>) | undefined
  /** `show`, or undefined after a person refused. */
  ask: Authorization["show"]
  /** The last challenge to a missing or expired token. */
  challenge: string
  /** The last challenge to a token with insufficient scopes. */
  lacking: string | undefined
  held: Grant | undefined
  /** The grant that the store returned last. A store that cannot write returns one older than `held`. */
  stored: Grant | undefined
}

const load = Effect.fnUntraced(function* (auth: Authorization) {
  const found = yield* auth.store.load(auth.server.url)
  return (auth.stored = Option.getOrUndefined(found))
})

/** Returns the grant in use, or the stored one. */
export const current = (auth: Authorization): Effect.Effect<Grant | undefined> => {
  const heldOr = (read: Effect.Effect<Grant | undefined>) =>
    Effect.suspend(() => (auth.held === undefined ? read : Effect.succeed(auth.held)))
  return heldOr(auth.lock.withPermits(1)(heldOr(Effect.map(load(auth), (found) => (auth.held = found)))))
}

const keep = (auth: Authorization, grant: Grant) =>
  Effect.suspend(() => {
    auth.held = grant
    return Effect.andThen(auth.store.save(auth.server.url, grant), load(auth))
  })

const forget = (auth: Authorization) =>
  Effect.suspend(() => {
    auth.held = undefined
    return auth.store.remove(auth.server.url)
  })

export const signOut = (auth: Authorization): Effect.Effect<void> =>
  Effect.suspend(() => {
    auth.lacking = undefined
    return auth.lock.withPermits(1)(forget(auth))
  })

/** Takes the grant of the store if another connection or process signed in, signed out or renewed the token. */
const isReplaced = Effect.fnUntraced(function* (auth: Authorization, grant: Grant | undefined) {
  const before = auth.stored
  const found = yield* load(auth)
  if (isSameToken(found, grant) || isSameToken(found, before)) return false
  auth.held = found
  return true
})

const isSameToken = (a: Grant | undefined, b: Grant | undefined): boolean =>
  a === undefined || b === undefined ? a === b : Redacted.value(a.accessToken) === Redacted.value(b.accessToken)

/**
 * Renews a grant. A refresh token that is refused is deleted; one whose request failed may work later. Once requested,
 * the new grant is stored even if the caller is interrupted, since it may hold the only valid refresh token.
 */
const refresh = Effect.fnUntraced(function* (auth: Authorization, grant: Grant) {
  if (yield* isReplaced(auth, grant)) return auth.held !== undefined
  if (grant.refreshToken === undefined) return false
  const parameters = { grant_type: "refresh_token", refresh_token: Redacted.value(grant.refreshToken) }
  const answer = yield* Effect.option(askForTokens(auth.server, auth.client, grant, parameters))
  if (Option.isNone(answer)) return false
  const fresh = yield* readTokens(answer.value)
  if (fresh !== undefined) {
    const { expiresAt: _, ...lasting } = grant
    yield* keep(auth, { ...lasting, ...fresh, scope: union(grant.scope, fresh.scope) })
    return true
  }
  if (answer.value.status !== 400 && answer.value.status !== 401) return false
  if (yield* isReplaced(auth, grant)) return auth.held !== undefined
  yield* forget(auth)
  return false
}, Effect.uninterruptible)

/** Returns the token to send, and renews it 30 seconds before it expires. */
export const accessToken = Effect.fnUntraced(function* (auth: Authorization) {
  const grant = yield* current(auth)
  const now = yield* Clock.currentTimeMillis
  if (grant?.expiresAt !== undefined && grant.expiresAt - 30_000 <= now) {
    yield* auth.lock.withPermits(1)(Effect.suspend(() => (auth.held === grant ? refresh(auth, grant) : Effect.void)))
  }
  return Option.map(Option.fromUndefinedOr(auth.held), ({ accessToken }) => accessToken)
})

/** Gets a new token after a challenge. Returns false if a person has to sign in. */
export const renew = Effect.fnUntraced(function* (auth: Authorization, challenge: string) {
  const refused = auth.held
  const lacked = lackedBy(challenge)
  if (auth.server.oauth.grant === "client_credentials") {
    if (lacked === undefined) auth.challenge = challenge
    yield* authorize(auth, lacked === undefined ? undefined : challenge, () => Effect.void)
    return true
  }
  if (refused !== undefined && lacked !== undefined) {
    auth.lacking = challenge
    const wider = widen(auth, refused, challenge, lacked)
    return yield* (yield* Attended) ? personOf(auth.server.url).withPermits(1)(wider) : wider
  }
  auth.challenge = challenge
  auth.lacking = undefined
  return yield* auth.lock.withPermits(1)(replace(auth, refused))
})

const replace = Effect.fnUntraced(function* (auth: Authorization, refused: Grant | undefined) {
  if (auth.held !== refused) return auth.held !== undefined
  if (refused === undefined) return yield* isReplaced(auth, undefined)
  if (yield* refresh(auth, refused)) return true
  if (refused.refreshToken === undefined) yield* forget(auth)
  return false
})

/** Gets a token with further scopes, which a refresh does not grant: from the store, or by asking a person. */
const widen = Effect.fnUntraced(function* (
  auth: Authorization,
  refused: Grant,
  challenge: string,
  lacked: ReadonlyArray<string>
) {
  const replaced = auth.held !== refused || (yield* auth.lock.withPermits(1)(isReplaced(auth, refused)))
  if (replaced) return auth.held !== undefined
  const known = scopesOf(refused.scope)
  const show = auth.ask
  if (show === undefined || !(yield* Attended)) return false
  if (lacked.every((scope) => known.includes(scope))) return false
  let isShown = false
  const showing = (url: string) => {
    isShown = true
    return show(url)
  }
  // A failure before the address was shown is not a refusal.
  const refuse = Effect.sync(() => {
    if (isShown) auth.ask = undefined
  })
  yield* Effect.tapError(authorize(auth, challenge, showing), () => refuse)
  return true
})

/** Signs in. `lacking` is the challenge to a token with insufficient scopes, if there was one. */
export const authorize = <E, R>(
  auth: Authorization,
  lacking: string | undefined,
  show: (url: string) => Effect.Effect<unknown, E, R>,
  timeout: Duration.Input = "5 minutes"
): Effect.Effect<void, McpError | E, R> =>
  Effect.gen(function* () {
    const { client, server } = auth
    const challenges = lacking === undefined ? [auth.challenge] : [auth.challenge, lacking]
    const scopeFor = ({ scope }: AuthorizationServer): string => {
      const configured = server.oauth.scopes?.join(" ")
      if (lackedBy(lacking ?? auth.challenge) === undefined) return configured ?? scope ?? ""
      return union(auth.held?.scope, configured, scope)
    }
    const grant =
      server.oauth.grant === "client_credentials"
        ? yield* Effect.flatMap(discover(server, client, challenges), (found) =>
            ClientGrant.grant(server, client, found, scopeFor(found))
          )
        : yield* signIn({ server, client, challenges, scopeFor, show, timeout })
    // Waits for a refresh in progress, which replaces only the previous grant.
    yield* auth.lock.withPermits(1)(keep(auth, grant))
    auth.ask = auth.show
  })

/** Lets one connection to a server ask a person at a time. The next one finds the new grant in the store. */
const personOf = (url: string): Semaphore.Semaphore => {
  const person = people.get(url) ?? Semaphore.makeUnsafe(1)
  people.set(url, person)
  return person
}

const people = new Map<string, Semaphore.Semaphore>()
