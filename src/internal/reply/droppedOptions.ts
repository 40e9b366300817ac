/**
 * Reports the options of a request that its model does not take.
 */

import type { Generation } from "../../Generation.ts"
import type { ModelCall } from "../../Middleware.ts"
import { emit } from "../run/publish.ts"
import type { Run } from "../run/run.ts"

/** Emits an event if other options are dropped than in the call before. */
export const reportDropped = (run: Run, { provider, request }: ModelCall): void => {
  const { generation, model } = request
  if (run.live.publish === undefined || provider.takes === undefined) return
  const options = missing(generation, provider.takes(request))
  const dropped = options.length === 0 ? "" : [provider.name, model.id, ...options].join(" ")
  if (dropped !== "" && dropped !== run.dropped) {
    emit(run, { type: "options_dropped", provider: provider.name, model: model.id, options })
  }
  run.dropped = dropped
}

/** The names of options that are given and not taken. */
const missing = (given: Generation, taken: Generation): ReadonlyArray<string> => [
  ...missingOf(["temperature", "maxTokens", "topP", "stopSequences", "seed"], given, taken),
  ...missingOf(["budget", "effort"], given.thinking ?? {}, taken.thinking ?? {}).map((name) => `thinking.${name}`)
]

const missingOf = <Name extends string>(
  names: ReadonlyArray<Name>,
  given: { readonly [name in Name]?: unknown },
  taken: { readonly [name in Name]?: unknown }
): ReadonlyArray<string> =>
  names.filter((name) => (given[name] ?? undefined) !== undefined && (taken[name] ?? undefined) === undefined)
