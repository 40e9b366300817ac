/**
 * Variables of the environment that may be unset or empty, which are the same here.
 */

import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"

/** Returns the first of `variables` that is set and not empty. */
export const findKey = Effect.fnUntraced(function* (variables: ReadonlyArray<string>) {
  for (const variable of variables) {
    const found = yield* Effect.option(Config.Redacted(variable))
    if (Option.isSome(found) && Redacted.value(found.value).trim() !== "") return found.value
  }
  return undefined
})

/** Returns the text of a variable, if it is set and not empty. */
export const findText = Effect.fnUntraced(function* (variable: string) {
  const found = yield* Effect.option(Config.String(variable))
  return Option.isSome(found) && found.value.trim() !== "" ? found.value.trim() : undefined
})
