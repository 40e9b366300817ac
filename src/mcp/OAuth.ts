/**
 * Signs in to MCP servers: OAuth 2.1 with PKCE.
 *
 * The first sign-in needs a person: `signIn` shows an address and waits for the browser to return to loopback. After
 * that, tokens are renewed without a person. Without a sign-in, calls fail with reason `needs_sign_in`. A call that
 * needs further scopes fails likewise, unless a person grants them through `Options.show`. Tokens are sent only to the
 * server they were issued for.
 *
 * @since 0.1.0
 */

import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as Semaphore from "effect/Semaphore"
import type { McpError } from "../KernelError.ts"
import * as Authorization from "./internal/authorization.ts"
import * as Http from "./internal/http.ts"
import type { HttpServer } from "./McpConfig.ts"
import type { Credentials } from "./McpConnection.ts"
import { TokenStore } from "./TokenStore.ts"

/**
 * The sign-in of one server.
 *
 * @category models
 * @since 0.1.0
 */
export interface OAuth {
  /** The credentials for the connection to that server. */
  readonly credentials: Credentials
  readonly state: Effect.Effect<"signed-in" | "needs-sign-in">
  /**
   * Signs in. `show` receives the address to open in a browser: always https, or http on loopback. Do not pass it
   * through a shell. `timeout` defaults to 5 minutes.
   */
  readonly signIn: <E, R>(
    show: (url: string) => Effect.Effect<unknown, E, R>,
    options?: { readonly timeout?: Duration.Input | undefined }
  ) => Effect.Effect<void, McpError | E, R>
  /** The time that a request may wait for a person, zero without `show`. */
  readonly patience: Duration.Duration
  /** Deletes the tokens, after a refresh in progress. */
  readonly signOut: Effect.Effect<void>
}

/**
 * Options of a sign-in.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /**
   * Shows a person the address to grant further scopes, as in `signIn`, while the request waits. The same scopes are
   * requested once. After a refusal no person is asked until the next `signIn`, which requests the missing scopes.
   */
  readonly show?: ((url: string) => Effect.Effect<unknown>) | undefined
}

/**
 * Prepares the sign-in of a server. Sends nothing yet.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = Effect.fnUntraced(function* (
  server: HttpServer,
  options?: Options
): Effect.fn.Return<OAuth, never, HttpClient.HttpClient | TokenStore> {
  const client = Http.discreet(yield* HttpClient.HttpClient)
  const show = options?.show
  const auth: Authorization.Authorization = {
    server,
    client,
    store: yield* TokenStore,
    lock: yield* Semaphore.make(1),
    show,
    ask: show,
    challenge: "",
    lacking: undefined,
    held: undefined,
    stored: undefined
  }
  return {
    credentials: {
      accessToken: Authorization.accessToken(auth),
      renew: (challenge) => Authorization.renew(auth, challenge)
    },
    state: Effect.map(Authorization.current(auth), (grant) => (grant === undefined ? "needs-sign-in" : "signed-in")),
    signIn: (show, options) =>
      Effect.suspend(() => Authorization.authorize(auth, auth.lacking, show, options?.timeout)),
    patience: show === undefined ? Duration.zero : Duration.minutes(5),
    signOut: Authorization.signOut(auth)
  }
})
