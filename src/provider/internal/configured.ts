/**
 * Reads an adapter's key and address from the configuration.
 *
 * A missing key is `ProviderUnavailable` when the layer is built, naming the
 * variable, so that nothing starts that cannot speak to its model.
 *
 * @since 0.1.0
 */
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { ProviderUnavailable } from "../../KernelError.ts"

/** The first of `variables` that is set to anything. The first one is named when none is. */
export const requireKey = (
  provider: string,
  variables: readonly [string, ...Array<string>]
): Effect.Effect<Redacted.Redacted, ProviderUnavailable> =>
  Effect.filterOrFail(
    findKey(variables),
    (key) => key !== undefined,
    () => new ProviderUnavailable({ provider, variable: variables[0] })
  )

/** The first of `variables` that is set to anything. */
export const findKey = /*#__PURE__*/ Effect.fnUntraced(function* (variables: ReadonlyArray<string>) {
  for (const variable of variables) {
    const found = yield* Effect.option(Config.Redacted(variable))
    if (Option.isSome(found) && Redacted.value(found.value).trim() !== "") return found.value
  }
  return undefined
})

/** The text of a variable, if it is set to anything. */
export const findText = /*#__PURE__*/ Effect.fnUntraced(function* (variable: string) {
  const found = yield* Effect.option(Config.String(variable))
  return Option.isSome(found) && found.value.trim() !== "" ? found.value.trim() : undefined
})
