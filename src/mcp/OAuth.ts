/**
 * Signs in to MCP servers: OAuth 2.1 with PKCE.
 *
 * The first sign-in needs a person: `signIn` shows an address and waits for the browser to return to loopback. After
 * that, tokens are renewed without asking anyone. Without a sign-in calls fail with `needs_sign_in`. A call that needs
 * more than was allowed fails likewise, unless `show` of the options finds a person who allows it. Tokens are sent only
 * to the server they were made for.
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
  /** For the connection to that server. */
  readonly credentials: Credentials
  readonly state: Effect.Effect<"signed-in" | "needs-sign-in">
  /**
   * Signs in. `show` receives the address to open in a browser: always https, or http on loopback; it must not pass
   * through a shell. Default of `timeout`: 5 minutes.
   */
  readonly signIn: <E, R>(
    show: (url: string) => Effect.Effect<unknown, E, R>,
    options?: { readonly timeout?: Duration.Input | undefined }
  ) => Effect.Effect<void, McpError | E, R>
  /** How long a request may wait for a person: zero without `show`. */
  readonly patience: Duration.Duration
  /** Forgets the tokens, after a refresh that is under way. */
  readonly signOut: Effect.Effect<void>
}

/**
 * How a request gets more than was allowed.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /**
   * Shows a person the address to allow it at, as `signIn` does, while the request waits. The same scopes are asked for
   * once. After a refusal no person is asked until the next `signIn`, which asks for what was lacking.
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
