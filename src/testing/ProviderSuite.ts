/**
 * Checks that a provider behaves as required, in any test framework.
 *
 * A check is a sentence and an Effect that dies if the provider fails it. The provider sends its requests with the
 * `HttpClient` in context, which the checks replace, so no connection is opened.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as Limits from "../Limits.ts"
import type { ProviderShape } from "../Provider.ts"
import { contentChecks, refusalChecks, replyChecks } from "./internal/providerChecks.ts"
import { ruleChecks } from "./internal/ruleChecks.ts"
import type * as RequestRules from "./RequestRules.ts"

/**
 * One requirement of a provider.
 *
 * @category models
 * @since 0.1.0
 */
export interface Check<out E, out R> {
  readonly name: string
  readonly run: Effect.Effect<void, E, R>
}

/**
 * A provider under test, and a reply of its vendor.
 *
 * @category models
 * @since 0.1.0
 */
export interface Subject<out E = never, out R = never> {
  /** Creates the provider. */
  readonly open: Effect.Effect<ProviderShape, E, R>
  /** The body of a whole reply, and the text in it. */
  readonly reply: { readonly body: string; readonly text: string; readonly contentType?: string | undefined }
  /** The key that the provider sends. No error may show it. */
  readonly secret: string
  /** The format of its requests, if `RequestRules` knows it. Then they are held against the rules of the format. */
  readonly wire?: RequestRules.Wire | undefined
}

/**
 * Returns the checks of a provider.
 *
 * @example
 * for (const { name, run } of ProviderSuite.checks({ open: HouseProvider.make({ apiKey }), reply, secret })) {
 *   it.effect(name, () => run)
 * }
 *
 * @category constructors
 * @since 0.1.0
 */
export const checks = <E, R>(subject: Subject<E, R>): ReadonlyArray<Check<E, Exclude<R, HttpClient.HttpClient>>> =>
  [...replyChecks, ...refusalChecks, ...contentChecks, ...(subject.wire === undefined ? [] : ruleChecks)].map(
    ({ body, name }) => ({
      name,
      run: body({
        ...subject,
        open: (client) => Effect.provideService(subject.open, HttpClient.HttpClient, client)
      }).pipe(Effect.provideService(Limits.Limits, { ...Limits.defaults, modelAttempts: 1 }))
    })
  )
