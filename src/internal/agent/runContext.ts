/**
 * The context of a run, between the Schema an agent declares and the JSON that is stored.
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Fault from "../base/fault.ts"
import { isJsonObject, type JsonObject } from "../base/json.ts"
import { AgentConfigInvalid } from "../../KernelError.ts"
import * as Team from "./team.ts"

/** A Schema of a context, which is stored as an object. */
export type ContextSchema<C> = Schema.ConstraintCodec<C, object>

/** The fields of an agent that decide about the context of its runs. */
interface Bearer {
  readonly name: string
  readonly context: ContextSchema<unknown> | undefined
  readonly agents: ReadonlyArray<Bearer | string>
  readonly handoffs: ReadonlyArray<Bearer | string>
}

/** The stored context of the run whose instructions are made. */
export const RunContext: Context.Reference<JsonObject> = Context.Reference<JsonObject>("kernai/RunContext", {
  defaultValue: () => ({})
})

/** Encodes the context of a new run. Without a schema it is JSON already. Fails if it does not fit the team. */
export const encode = (first: Bearer, given: unknown): Effect.Effect<JsonObject, AgentConfigInvalid> =>
  Effect.tap(encoded(first.context, given), (json) => fits(first, json))

const encoded = (
  schema: ContextSchema<unknown> | undefined,
  given: unknown
): Effect.Effect<JsonObject, AgentConfigInvalid> => {
  if (schema === undefined) return objectOf(given ?? {}, "is not a JSON object")
  const json = Schema.encodeUnknownEffect(Schema.toCodecJson(schema))(given)
  return Effect.flatMap(
    Effect.mapError(json, (error) => misfit("context", error)),
    (json) => objectOf(json, "its schema does not encode to an object")
  )
}

const objectOf = (value: unknown, reason: string): Effect.Effect<JsonObject, AgentConfigInvalid> =>
  isJsonObject(value) ? Effect.succeed(value) : Effect.fail(new AgentConfigInvalid({ path: "context", reason }))

/** Decodes a stored context. */
export const decode = <C>(
  schema: ContextSchema<C>,
  stored: JsonObject,
  path = "context"
): Effect.Effect<C, AgentConfigInvalid> =>
  Effect.mapError(Schema.decodeUnknownEffect(Schema.toCodecJson(schema))(stored), (error) => misfit(path, error))

/** Fails if a context does not fit an agent that a run may reach. */
export const fits = (first: Bearer, stored: JsonObject): Effect.Effect<void, AgentConfigInvalid> =>
  Effect.forEach(
    Team.of(first).members.values(),
    ({ context, name }) =>
      context === undefined
        ? Effect.void
        : decode(context, stored, name === first.name ? "context" : `${name}.context`),
    { discard: true }
  )

const misfit = (path: string, error: Schema.SchemaError): AgentConfigInvalid => {
  const fault = Fault.ofSchema(error)
  return new AgentConfigInvalid({ path: `${path}${fault.path.replaceAll("/", ".")}`, reason: fault.reason })
}
