/**
 * Creates schemas from JSON Schema, for answers whose type is known only at run time.
 */

import * as JsonSchema from "effect/JsonSchema"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaRepresentation from "effect/SchemaRepresentation"
import { isRecord } from "../../kit/json.ts"
import { AgentConfigInvalid } from "../../KernelError.ts"

/**
 * Creates a schema from a JSON Schema. Rejects patterns, because matching them against the output of a model could take
 * unbounded time.
 */
export const toSchema = (schema: unknown): Result.Result<Schema.ConstraintDecoder<unknown>, AgentConfigInvalid> => {
  const made = (patterns: "error" | "ignore") => {
    const document = JsonSchema.fromSchemaDraft2020_12(isRecord(schema) ? schema : {})
    // The schema is built from JSON Schema only, so it needs no services.
    const output = SchemaRepresentation.fromJsonSchemaDocument(document, {
      patterns
    }) as unknown as Schema.ConstraintDecoder<unknown>
    if (!isReadable(output)) throw new Error("it refers to itself and to nothing else")
    return output
  }
  return Result.try({
    try: () => made("error"),
    catch: (error) => {
      // If the schema is valid without its patterns, they are the reason for the rejection.
      const hasPattern = Result.isSuccess(Result.try(() => made("ignore")))
      const why = error instanceof Error ? error.message : "it cannot be read"
      return new AgentConfigInvalid({ path: "output_schema", reason: hasPattern ? patterned : why })
    }
  })
}

const patterned =
  "it has a 'pattern', which would be matched against what a model writes in whatever time that takes: leave it out"

const isReadable = (output: Schema.ConstraintDecoder<unknown>): boolean => {
  try {
    Schema.decodeUnknownResult(output)(null)
    return true
  } catch {
    return false
  }
}
