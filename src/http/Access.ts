/**
 * Decides who may use the HTTP door.
 *
 * Every route asks `Access` for the caller of its request. A run belongs to the caller who started it, and no other
 * caller can find it. Without a layer of this module, only programs and pages of the same machine are admitted, as the
 * operator of the server. On a shared machine, `localToken` admits only requests with the token of this start.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Callers from "../Caller.ts"
import { Forbidden, Invalid, Unauthorized } from "./HttpProblem.ts"
import * as RequestGuard from "../kit/requestGuard.ts"
import * as Secrets from "../kit/secrets.ts"

// ---------------------------------------------------------------- models

/**
 * The caller of a request. Its `id` and its `tenant` are part of the ids of its runs, so both have at most 48 characters
 * here. The same id in two tenants is two callers. Runs carry the tenant, the roles and the labels, and policies decide
 * by them.
 *
 * @category models
 * @since 0.1.0
 */
export interface Caller extends Callers.Caller {
  /**
   * True for an operator, who sees and answers the runs of every tenant and sees events with the agents' instructions. An
   * operator has the role `operator`. Default: false.
   */
  readonly isOperator?: boolean | undefined
}

/**
 * The caller of the current request, for handlers.
 *
 * @category services
 * @since 0.1.0
 */
export class CurrentCaller extends Context.Service<CurrentCaller, Caller>()("kernai/http/CurrentCaller") {}

/**
 * Returns the caller of a request, or fails.
 *
 * @category models
 * @since 0.1.0
 */
export type Authenticate = Effect.Effect<
  Caller,
  Unauthorized | Forbidden | Invalid,
  HttpServerRequest.HttpServerRequest
>

/**
 * Names under which the server may be addressed.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options extends RequestGuard.Names {}

/**
 * Options of access from the same machine.
 *
 * @category models
 * @since 0.1.0
 */
export interface LocalOptions extends Options {
  /**
   * Admits requests that a proxy on this machine passed on. Set it only if the proxy admits nobody but the operator.
   * Default: false, since such a request may come from anywhere.
   */
  readonly trustProxy?: boolean | undefined
}

/**
 * The caller of local programs.
 *
 * @category constructors
 * @since 0.1.0
 */
export const operator: Caller = { id: "local", isOperator: true }

/**
 * Finds callers. Default: `local`.
 *
 * @category references
 * @since 0.1.0
 */
export const Access: Context.Reference<Authenticate> = Context.Reference<Authenticate>("kernai/http/Access", {
  defaultValue: () => admitted({}, local)
})

// ---------------------------------------------------------------- layers

/**
 * Admits callers by an effect over the request.
 *
 * The `Host` of a request from the same machine must be `localhost`, a loopback address or one of `hosts`, so that no
 * foreign page reaches the server through a name of its own. A page must have the server's own origin or one of
 * `origins`.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (authenticate: Authenticate, options: Options = {}): Layer.Layer<never> =>
  Layer.succeed(Access, admitted(options, authenticate))

/**
 * Admits requests with a bearer token. `verify` returns the caller of a token, or none.
 *
 * @example
 * const AccessLive = Access.bearer((token) => Effect.map(sessions.find(token), Option.map(({ user }) => ({ id: user }))))
 *
 * @category layers
 * @since 0.1.0
 */
export const bearer = <R = never>(
  verify: (token: Redacted.Redacted<string>) => Effect.Effect<Option.Option<Caller>, never, R>,
  options: Options = {}
): Layer.Layer<never, never, R> => verified(verify, options, bearerOf)

/**
 * Admits requests with a cookie, such as that of a session. Set the cookie with `SameSite`, and give `origins` only to
 * pages of your own.
 *
 * @example
 * const AccessLive = Access.cookie("session", (value) => sessions.caller(value))
 *
 * @category layers
 * @since 0.1.0
 */
export const cookie = <R = never>(
  name: string,
  verify: (value: Redacted.Redacted<string>) => Effect.Effect<Option.Option<Caller>, never, R>,
  options: Options = {}
): Layer.Layer<never, never, R> => verified(verify, options, ({ cookies }) => cookies[name])

/**
 * Creates a token for one start of a server, of 256 random bits.
 *
 * @category constructors
 * @since 0.1.0
 */
export const makeToken: Effect.Effect<Redacted.Redacted> = Secrets.random

/**
 * Admits requests from the same machine that carry a token as their bearer token, as the operator. Without a token,
 * every program of every user of the machine would be admitted. Show the token where only the user sees it, such as in
 * the terminal that started the server.
 *
 * @example
 * const AccessLive = Layer.unwrap(
 *   Effect.gen(function* () {
 *     const token = yield* Access.makeToken
 *     yield* Console.log(`authorization: Bearer ${Redacted.value(token)}`)
 *     return Access.localToken(token)
 *   })
 * )
 *
 * @category layers
 * @since 0.1.0
 */
export const localToken = (token: Redacted.Redacted, options: LocalOptions = {}): Layer.Layer<never> => {
  const verified = Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
    Effect.filterOrFail(
      Secrets.isSame(bearerOf(request) ?? "", token),
      (isSame) => isSame,
      () => new Unauthorized()
    )
  )
  return layer(
    Effect.tap(fromThisMachine(options), () => verified),
    options
  )
}

/**
 * Admits all requests from the same machine, as the operator. Without a layer of this module, that is the default.
 *
 * @example
 * const AccessLive = Access.layerLocal({ hosts: ["app.localdomain"], trustProxy: true })
 *
 * @category layers
 * @since 0.1.0
 */
export const layerLocal = (options: LocalOptions = {}): Layer.Layer<never> => layer(fromThisMachine(options), options)

// Declared as a function, because `local` needs it while the module loads.
function fromThisMachine({ trustProxy = false }: LocalOptions): Authenticate {
  return Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => {
    if (!RequestGuard.isLoopback(request)) {
      return Effect.fail(new Forbidden({ detail: "only this machine is admitted: the server has no Access layer" }))
    }
    return trustProxy || !RequestGuard.isProxied(request)
      ? Effect.succeed(operator)
      : Effect.fail(new Forbidden({ detail: proxied }))
  })
}

const proxied =
  "only this machine is admitted, and this request came through a proxy: provide Access.bearer or Access.cookie, " +
  "or Access.layerLocal({ trustProxy: true }) if the proxy admits only the operator"

/**
 * Admits all requests from the same machine that came through no proxy, as the operator.
 *
 * @category constructors
 * @since 0.1.0
 */
export const local: Authenticate = fromThisMachine({})

/**
 * Fails for a request that is ambiguous, is not for this server, or comes from a page that may not send it. Every layer
 * of this module does so first; use it for routes that need no caller.
 *
 * @category constructors
 * @since 0.1.0
 */
export const rejectForeign = (
  options: Options
): Effect.Effect<void, Forbidden | Invalid, HttpServerRequest.HttpServerRequest> =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
    admittedUnless(RequestGuard.refusal(request, options))
  )

/**
 * Fails for a request whose body a foreign page may send without asking. Every route with a JSON body does so.
 *
 * @category constructors
 * @since 0.1.0
 */
export const rejectSimpleBody: Effect.Effect<void, Forbidden | Invalid, HttpServerRequest.HttpServerRequest> =
  Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => admittedUnless(RequestGuard.unfitBody(request)))

const admittedUnless = (refusal: RequestGuard.Refusal | undefined): Effect.Effect<void, Forbidden | Invalid> => {
  if (refusal === undefined) return Effect.void
  const { reason: detail, status } = refusal
  return Effect.fail(status === 403 ? new Forbidden({ detail }) : new Invalid({ detail }))
}

const bearerOf = ({ headers }: HttpServerRequest.HttpServerRequest): string | undefined =>
  /^bearer +(\S+)$/i.exec(headers["authorization"] ?? "")?.[1]

const verified = <R>(
  verify: (secret: Redacted.Redacted<string>) => Effect.Effect<Option.Option<Caller>, never, R>,
  options: Options,
  secretOf: (request: HttpServerRequest.HttpServerRequest) => string | undefined
): Layer.Layer<never, never, R> =>
  Layer.effect(
    Access,
    Effect.map(Effect.context<R>(), (context) =>
      admitted(
        options,
        Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => {
          const secret = secretOf(request)
          if (secret === undefined || secret === "") return Effect.fail(new Unauthorized())
          return Effect.flatMap(Effect.provideContext(verify(Redacted.make(secret)), context), (found) =>
            Option.isSome(found) ? Effect.succeed(found.value) : Effect.fail(new Unauthorized())
          )
        })
      )
    )
  )

/** Checks host and origin first, so that a page of another origin learns nothing about credentials. */
// Declared as a function, because the reference above needs it while the module loads.
function admitted(options: Options, authenticate: Authenticate): Authenticate {
  return Effect.andThen(rejectForeign(options), Effect.flatMap(authenticate, checked))
}

function checked(caller: Caller): Effect.Effect<Caller, Forbidden> {
  const { id, tenant = id } = caller
  if (!isName(id) || !isName(tenant)) {
    const detail = "the id of a caller and its tenant must have 1 to 48 characters, none of them a control"
    return Effect.fail(new Forbidden({ detail }))
  }
  return Schema.is(Callers.Caller)(caller)
    ? Effect.succeed(caller)
    : Effect.fail(new Forbidden({ detail: "the roles or labels of the caller are beyond their bounds" }))
}

const isName = (text: string): boolean =>
  text.length > 0 && text.length <= 48 && text.isWellFormed() && !/\p{Cc}/u.test(text)
