/**
 * Assembles skills from their options: the value that a registry sees, the context of a call, and the approval that an
 * input needs.
 */

import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { JsonObject } from "../../kit/json.ts"
import { encoder } from "./failureText.ts"
import * as Input from "./skillInput.ts"
import { listingOf } from "./skillInput.ts"
import type { AnySkill, Approval, CallScope, Made, Options, Reporting } from "./skillModel.ts"
import * as Settings from "./skillSettings.ts"

/** Adds the declared settings to the scope of a call. */
export const contexts = (
  name: string,
  options: Options
): ((scope: CallScope) => CallScope & Settings.AnySettings & Reporting<unknown>) => {
  const settings = Settings.make(name, options.config, options.credentials)
  return (scope) => {
    const { report = unheard } = scope
    const { config, credential } = settings()
    return {
      ...scope,
      config,
      credential,
      progress: (progress) => report({ _tag: "Progress", progress }),
      preliminary: (output) => report({ _tag: "Preliminary", output })
    }
  }
}

const unheard = () => Effect.void

/** Returns the reason to ask a person about an input. */
export const approvalOf = <I, E, R>(
  name: string,
  given: Approval<I> | undefined,
  decode: (params: JsonObject) => Effect.Effect<I, E, R>
): ((params: JsonObject) => Effect.Effect<string | undefined, E, R>) | undefined => {
  if (given === undefined) return undefined
  const usual = `'${name}' has to be approved`
  if (given === "always") return () => Effect.succeed(usual)
  return (params) =>
    Effect.map(decode(params), (input) => {
      const asked = given(input)
      return typeof asked === "string" ? asked : asked ? usual : undefined
    })
}

/** Builds a skill from its options, its input and its call. Defaults are the most cautious choices. */
export const assemble = <Name extends string, I, A, R, D>(
  name: Name,
  options: Options,
  input: Input.Input,
  { decode, encode }: Pick<Made<Name, I, A, R, never, D>, "decode" | "encode">,
  call: AnySkill<R>["call"],
  more: Pick<AnySkill<R>, "needsApproval" | "normalize"> = {}
): Made<Name, I, A, R, never, D> => {
  const listing = Input.lazy(() => listingOf(name, options, input))
  const effects = options.effects ?? "write"
  return {
    "~kernai/Skill": { _Input: (_) => _, _Output: (_) => _, _Progress: (_) => _ },
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
    ...(options.aliases === undefined ? {} : { aliases: options.aliases }),
    ...(options.timeout === undefined ? {} : { timeout: Duration.fromInputUnsafe(options.timeout) }),
    ...(options.credentials === undefined ? {} : { credentialKeys: Object.keys(options.credentials).sort() }),
    get inputSchema() {
      return input.schema()
    },
    get lostPatterns() {
      return input.lostPatterns()
    },
    get listing() {
      return listing()
    },
    parameters: input.parameters,
    decode,
    encode,
    ...more,
    ...(options.failure === undefined ? {} : { failure: options.failure, encodeFailure: encoder(options.failure) }),
    call
  }
}
