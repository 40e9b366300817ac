/**
 * Signing in to MCP servers: OAuth 2.1 with PKCE.
 *
 * A connection is given tokens and has them renewed without asking anyone. The
 * first sign-in needs a person: `signIn` shows an address and waits for the
 * browser to come back to loopback. Without one the state is
 * `needs-sign-in`, and calls fail with that reason. So does one that needs more
 * than was allowed, unless `show` of the options finds a person who allows it.
 * Tokens go to the server they were made for and to nobody else.
 *
 * @since 0.1.0
 */

import * as Clock from "effect/Clock"
import * as Digest from "effect/crypto/Digest"
import * as SecureRandom from "effect/crypto/SecureRandom"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Base64Url from "effect/encoding/Base64Url"
import * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Semaphore from "effect/Semaphore"
import type { McpError } from "../KernelError.ts"
import * as Challenge from "./internal/challenge.ts"
import * as Discovery from "./internal/discovery.ts"
import * as Http from "./internal/http.ts"
import * as Loopback from "./internal/loopback.ts"
import * as Tokens from "./internal/oauthTokens.ts"
import type { HttpServer } from "./McpConfig.ts"
import type { Credentials } from "./McpConnection.ts"
import { type Grant, TokenStore } from "./TokenStore.ts"

/**
 * Is there a sign-in for the server?
 *
 * @category models
 * @since 0.1.0
 */
export type State = "signed-in" | "needs-sign-in"

/**
 * The sign-in of one server.
 *
 * @category models
 * @since 0.1.0
 */
export interface OAuth {
  /** For the connection to that server. */
  readonly credentials: Credentials
  readonly state: Effect.Effect<State>
  /**
   * Signs in. `show` is given the address to open in a browser: always https,
   * or http on loopback; it must not pass through a shell. The user has five
   * minutes, unless `timeout` says otherwise.
   */
  readonly signIn: <E, R>(
    show: (url: string) => Effect.Effect<unknown, E, R>,
    options?: { readonly timeout?: Duration.Input | undefined }
  ) => Effect.Effect<void, McpError | E, R>
  /** How long a request may wait for a person: not at all without `show`. */
  readonly patience: Duration.Duration
  /** Forgets the tokens, once a refresh that is under way has ended. */
  readonly signOut: Effect.Effect<void>
}

/**
 * What a request may do that needs more than was allowed.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /**
   * Shows a person the address to allow it at, as `signIn` does, while the request waits. Nobody is asked for the same
   * twice; who does not allow it is asked no more until the next `signIn`, which asks for what was lacking by itself.
   */
  readonly show?: ((url: string) => Effect.Effect<unknown>) | undefined
}

/**
 * Prepares the sign-in of a server. Nothing is sent yet.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = Effect.fnUntraced(function* (
  server: HttpServer,
  options?: Options
): Effect.fn.Return<OAuth, never, HttpClient.HttpClient | TokenStore> {
  const client = Http.discreet(yield* HttpClient.HttpClient)
  const store = yield* TokenStore
  const gate = yield* Semaphore.make(1)
  const person = personOf(store, server.url)
  // How to ask a person within a request; undefined once somebody declined.
  let ask = options?.show
  // What was said last where a sign-in was lacking, and since then where it allowed too little.
  let challenge = ""
  let more: string | undefined
  let held: Grant | undefined
  // What the store last gave. Where it keeps nothing, that is older than what is held.
  let stored: Grant | undefined

  const heldOr = (read: Effect.Effect<Grant | undefined>) =>
    Effect.suspend(() => (held === undefined ? read : Effect.succeed(held)))
  const load = Effect.suspend(() =>
    Effect.map(store.load(server.url), (found) => (stored = Option.getOrUndefined(found)))
  )
  // What was read before somebody signed in or out is not held after that.
  const current = heldOr(gate.withPermits(1)(heldOr(Effect.map(load, (found) => (held = found)))))
  const keep = (grant: Grant) =>
    Effect.suspend(() => {
      held = grant
      return Effect.andThen(store.save(server.url, grant), load)
    })
  const forget = Effect.suspend(() => {
    held = undefined
    return store.remove(server.url)
  })

  // Somebody may have signed in or out, or renewed the token, beside us: in another process, or for another connection.
  const isReplaced = (grant: Grant | undefined) =>
    Effect.suspend(() => {
      const before = stored
      return Effect.map(load, (found) => {
        if (isSameToken(found, grant) || isSameToken(found, before)) return false
        held = found
        return true
      })
    })

  // A refresh token that was refused is worth nothing; one that met no answer may work later. Once asked,
  // the answer is kept whatever becomes of the caller: it may hold the only refresh token that still works.
  const refresh = Effect.fnUntraced(function* (grant: Grant) {
    if (yield* isReplaced(grant)) return held !== undefined
    if (grant.refreshToken === undefined) return false
    const answer = yield* Effect.option(
      Tokens.ask(server.name, client, grant, {
        grant_type: "refresh_token",
        refresh_token: Redacted.value(grant.refreshToken)
      })
    )
    if (Option.isNone(answer)) return false
    const fresh = yield* Tokens.read(answer.value)
    if (fresh !== undefined) {
      const { expiresAt: _, ...lasting } = grant
      yield* keep({ ...lasting, ...fresh, scope: Challenge.union(grant.scope, fresh.scope) })
    } else if (answer.value.status === 400 || answer.value.status === 401) {
      if (yield* isReplaced(grant)) return held !== undefined
      yield* forget
    }
    return fresh !== undefined
  }, Effect.uninterruptible)

  const accessToken = Effect.gen(function* () {
    const grant = yield* current
    if (grant === undefined) return Option.none()
    if (!(yield* isStale(grant))) return Option.some(grant.accessToken)
    yield* gate.withPermits(1)(Effect.suspend(() => (held === grant ? refresh(grant) : Effect.succeed(true))))
    return Option.map(Option.fromUndefinedOr(held), (grant) => grant.accessToken)
  })

  const renew = Effect.fnUntraced(function* (asked: string) {
    const refused = held
    const lacked = Challenge.lacked(asked)
    if (refused !== undefined && lacked !== undefined) {
      more = asked
      const wider = widen(refused, asked, lacked)
      return yield* (yield* Challenge.Attended) ? person.withPermits(1)(wider) : wider
    }
    challenge = asked
    more = undefined
    return yield* gate.withPermits(1)(
      Effect.gen(function* () {
        if (held !== refused) return held !== undefined
        if (refused === undefined) return yield* isReplaced(undefined)
        if (yield* refresh(refused)) return true
        if (refused.refreshToken === undefined) yield* forget
        return false
      })
    )
  })

  // A token that allows too little allows no more once it is renewed.
  const widen = Effect.fnUntraced(function* (refused: Grant, asked: string, lacked: ReadonlyArray<string>) {
    if (held !== refused || (yield* gate.withPermits(1)(isReplaced(refused)))) return held !== undefined
    const known = Challenge.scopesOf(refused.scope)
    const show = ask
    if (show === undefined || !(yield* Challenge.Attended)) return false
    if (lacked.every((scope) => known.includes(scope))) return false
    let isShown = false
    const showing = (url: string) => {
      isShown = true
      return show(url)
    }
    // Who was shown nothing, as where to sign in was not to be found, declined nothing.
    const decline = Effect.sync(() => {
      if (isShown) ask = undefined
    })
    yield* Effect.tapError(authorize(asked, showing), () => decline)
    return true
  })

  const authorize = <E, R>(
    asked: string | undefined,
    show: (url: string) => Effect.Effect<unknown, E, R>,
    timeout: Duration.Input = patience
  ): Effect.Effect<void, McpError | E, R> =>
    Effect.gen(function* () {
      const found = yield* Discovery.discover(server, client, asked === undefined ? [challenge] : [challenge, asked])
      const random = yield* SecureRandom.SecureRandom
      const state = Base64Url.encode(yield* random.randomBytes(32))
      const verifier = Base64Url.encode(yield* random.randomBytes(32))
      const digest = yield* (yield* Digest.Digest).digest(Digest.sha256, new TextEncoder().encode(verifier))
      const page = yield* Effect.mapError(Loopback.listen(server.oauth.redirectPort, state), () =>
        Discovery.needsSignIn(server, `the sign-in cannot listen on port ${server.oauth.redirectPort} of this computer`)
      )
      const registered = yield* Tokens.register(server, client, found, page.redirectUri)
      const configured = server.oauth.scopes?.join(" ")
      const scope =
        Challenge.lacked(asked ?? challenge) === undefined
          ? (configured ?? found.scope ?? "")
          : Challenge.union(held?.scope, configured, found.scope)

      const url = new URL(found.authorizationEndpoint)
      const parameters = {
        response_type: "code",
        client_id: registered.clientId,
        redirect_uri: page.redirectUri,
        state,
        code_challenge: Base64Url.encode(digest),
        code_challenge_method: "S256",
        resource: found.resource,
        ...(scope === "" ? {} : { scope })
      }
      for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
      const answer = yield* Effect.timeoutOrElse(Effect.andThen(show(url.href), page.answer), {
        duration: timeout,
        orElse: () =>
          Effect.fail(Discovery.needsSignIn(server, `nobody signed in to MCP server '${server.name}' in time`))
      })
      const token = yield* Tokens.ask(server.name, client, registered, {
        grant_type: "authorization_code",
        code: yield* codeOf(server, found, answer),
        redirect_uri: page.redirectUri,
        code_verifier: verifier
      })
      const fresh = yield* Tokens.read(token)
      if (fresh === undefined) {
        return yield* Discovery.needsSignIn(
          server,
          `the authorization server of MCP server '${server.name}' gave no token${Tokens.errorOf(token)}`
        )
      }
      // A refresh that is under way forgets or replaces only what was there before.
      yield* gate.withPermits(1)(keep({ ...registered, ...fresh, scope: Challenge.union(scope, fresh.scope) }))
      ask = options?.show
    }).pipe(Effect.scoped, Effect.provide(crypto))

  return {
    credentials: { accessToken, renew },
    state: Effect.map(current, (grant) => (grant === undefined ? "needs-sign-in" : "signed-in")),
    signIn: (show, options) => Effect.suspend(() => authorize(more, show, options?.timeout)),
    patience: options?.show === undefined ? Duration.zero : patience,
    // A refresh that is under way would keep what it is given.
    signOut: Effect.suspend(() => {
      more = undefined
      return gate.withPermits(1)(forget)
    })
  }
})

const patience = Duration.minutes(5)

/** Nobody is asked by two connections at once: what is allowed for one is found in the store by the other. */
const personOf = (store: TokenStore["Service"], url: string): Semaphore.Semaphore => {
  const before = people.get(store)?.get(url)
  if (before !== undefined) return before
  const person = Semaphore.makeUnsafe(1)
  people.set(store, (people.get(store) ?? new Map<string, Semaphore.Semaphore>()).set(url, person))
  return person
}

const people = new WeakMap<TokenStore["Service"], Map<string, Semaphore.Semaphore>>()

// A token is renewed a little early: it has a way to go.
const isStale = (grant: Grant) =>
  Effect.map(Clock.currentTimeMillis, (now) => grant.expiresAt !== undefined && grant.expiresAt - 30_000 <= now)

const isSameToken = (a: Grant | undefined, b: Grant | undefined): boolean =>
  a === undefined || b === undefined ? a === b : Redacted.value(a.accessToken) === Redacted.value(b.accessToken)

const codeOf = (
  server: HttpServer,
  found: Discovery.AuthorizationServer,
  answer: URLSearchParams
): Effect.Effect<string, McpError> => {
  const issuer = answer.get("iss")
  // An answer mixed up between two authorization servers is worth nothing (RFC 9207).
  if (issuer === null ? found.namesItself : issuer !== found.issuer) {
    return Effect.fail(
      Discovery.needsSignIn(server, `another authorization server answered for MCP server '${server.name}'`)
    )
  }
  const code = answer.get("code")
  if (code !== null && code !== "") return Effect.succeed(code)
  const reason = answer.get("error")?.slice(0, 100) ?? "no code"
  return Effect.fail(
    Discovery.needsSignIn(server, `the sign-in to MCP server '${server.name}' was refused (${JSON.stringify(reason)})`)
  )
}

const crypto = Layer.merge(SecureRandom.layerWebCrypto, Digest.layerWebCrypto)
