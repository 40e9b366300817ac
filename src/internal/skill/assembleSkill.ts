/**
 * What `Skill.make` and `Skill.dynamic` share: a skill from its options, its input and its call.
 */

import * as Duration from "effect/Duration"
import * as Blocks from "../../Block.ts"
import type { AnySkill, CallScope, Made, Options } from "../../Skill.ts"
import * as Input from "./skillInput.ts"
import * as Settings from "./skillSettings.ts"
import { visible } from "../base/visible.ts"

/** Adds the settings a skill may ask for to where it runs. */
export const contexts = (name: string, options: Options): ((scope: CallScope) => CallScope & Settings.AnySettings) => {
  const settings = Settings.make(name, options.config, options.credentials)
  return (scope) => ({ ...scope, ...settings() })
}

/** Puts a skill together from what it is made of: what is not told is the careful choice. */
export const assemble = <Name extends string, I, A, R>(
  name: Name,
  options: Options,
  input: Input.Input,
  call: AnySkill<R>["call"],
  normalize?: AnySkill<R>["normalize"]
): Made<Name, I, A, R> => {
  const listing = Input.lazy(() => entry(name, options, input))
  const effects = options.effects ?? "write"
  return {
    "~kernai/Skill": { _Input: (_) => _, _Output: (_) => _ },
    name,
    description: options.description,
    effects,
    annotations: {
      readonly: effects === "read",
      destructive: effects === "write",
      idempotent: effects !== "write",
      openWorld: true,
      ...options.annotations
    },
    requires: options.requires ?? [],
    produces: options.produces ?? [],
    source: options.source ?? "native",
    ...(options.timeout === undefined ? {} : { timeout: Duration.fromInputUnsafe(options.timeout) }),
    get inputSchema() {
      return input.schema()
    },
    get listing() {
      return listing()
    },
    parameters: input.parameters,
    ...(normalize === undefined ? {} : { normalize }),
    call
  }
}

/** The entry of a skill in the listing: names, types and defaults, never resolved values (BP-94). */
const entry = (name: string, options: Options, input: Input.Input): string => {
  const names = input.names()
  const config = Object.entries(options.config ?? {}).map(
    ([key, spec]) => `${key} (${spec.type ?? "string"})${spec.default == null ? "" : ` default: ${spec.default}`}`
  )
  const credentials = Object.entries(options.credentials ?? {}).map(([key, spec]) =>
    spec.required === true ? `${key} (required)` : key
  )
  return [
    // A foreign source describes its tools as it likes: nothing it says may look like a block (BP-76).
    options.description === "" ? `- ${name}` : `- ${name}: ${Blocks.escape(options.description)}`,
    ...(names.length === 0
      ? []
      : [`Inputs: ${Blocks.escape(visible(Input.summary(input)))}`, `Usage: ${Input.usage(name, names)}`]),
    ...(config.length === 0 ? [] : [`Config: ${config.join(", ")}`]),
    ...(credentials.length === 0 ? [] : [`Credentials: ${credentials.join(", ")}`])
  ].join("\n  ")
}
