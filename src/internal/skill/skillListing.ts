/**
 * The entry of a skill in the listing for models.
 */

import { escape } from "../../Block.ts"
import type { Kind } from "../../Media.ts"
import { visible } from "../base/text.ts"
import * as Input from "./skillInput.ts"
import type { Configs, Credentials } from "./skillSettings.ts"

/** The options of a skill that its entry shows. */
interface Described {
  readonly description: string
  readonly config?: Configs | undefined
  readonly credentials?: Credentials | undefined
  readonly produces?: ReadonlyArray<Kind> | undefined
}

/** Returns the entry of a skill: names, types and defaults of its inputs and settings, but no values of settings. */
export const listingOf = (name: string, options: Described, input: Input.Input): string => {
  const names = input.names()
  const config = Object.entries(options.config ?? {}).map(
    ([key, spec]) => `${key} (${spec.type ?? "string"})${spec.default == null ? "" : ` default: ${spec.default}`}`
  )
  const credentials = Object.entries(options.credentials ?? {}).map(([key, spec]) =>
    spec.required === true ? `${key} (required)` : key
  )
  return [
    // The description may come from a server: escaped, it cannot open or close a block.
    options.description === "" ? `- ${name}` : `- ${name}: ${escape(options.description)}`,
    ...(names.length === 0
      ? []
      : [`Inputs: ${escape(visible(Input.summary(input)))}`, `Usage: ${Input.usage(name, names)}`]),
    ...(options.produces === undefined || options.produces.length === 0
      ? []
      : [`Produces: ${options.produces.join(", ")}`]),
    ...(config.length === 0 ? [] : [`Config: ${config.join(", ")}`]),
    ...(credentials.length === 0 ? [] : [`Credentials: ${credentials.join(", ")}`])
  ].join("\n  ")
}
