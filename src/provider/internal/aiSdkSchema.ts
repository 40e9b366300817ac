/**
 * Input schemas of AI SDK tools: read from the forms that the AI SDK accepts, and written as a standard schema.
 */

import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { DefinitionInvalid } from "../../KernelError.ts"
import { isJsonObject, type JsonObject } from "../../kit/json.ts"
import { type Fields, fields, isFields } from "./readFields.ts"

/** The JSON Schema of an input, and the function that checks one, if there is any. */
export interface InputSchema {
  readonly jsonSchema: JsonObject
  readonly validate: ((value: unknown) => unknown) | undefined
}

/** Reads a schema: one of the AI SDK, a function that returns one, or a standard schema with a JSON Schema. */
export const read = (name: string, given: unknown): Effect.Effect<InputSchema, DefinitionInvalid> =>
  Effect.flatMap(
    Effect.tryPromise({ try: async () => await formOf(given), catch: () => wrong(name) }),
    ({ jsonSchema, validate }) =>
      isJsonObject(jsonSchema)
        ? Effect.succeed({
            jsonSchema:
              jsonSchema["type"] === "object" ? jsonSchema : { type: "object", properties: {}, ...jsonSchema },
            validate
          })
        : Effect.fail(wrong(name))
  )

/** Checks an input. The failure says what is wrong with it. */
export const validated = (
  validate: InputSchema["validate"],
  input: JsonObject
): Effect.Effect<Result.Result<unknown, string>> =>
  validate === undefined
    ? Effect.succeed(Result.succeed(input))
    : Effect.match(
        Effect.tryPromise(async () => asFields(await validate(input))),
        {
          onFailure: () => Result.fail("the input cannot be checked"),
          onSuccess: (checked) => (checked["success"] === true ? Result.succeed(checked["value"]) : failed(checked))
        }
      )

const failed = ({ error }: Fields): Result.Result<never, string> => {
  const { issues } = asFields(error)
  const [first] = Array.isArray(issues) ? issues.map((issue: unknown) => asFields(issue)["message"]) : []
  return Result.fail(typeof first === "string" ? first : error instanceof Error ? error.message : "it does not fit")
}

const wrong = (name: string) =>
  new DefinitionInvalid({ name, reason: "its inputSchema has no JSON Schema: wrap it with asSchema of the AI SDK" })

const formOf = async (given: unknown): Promise<Pick<InputSchema, "validate"> & { readonly jsonSchema: unknown }> => {
  const standard = standardOf(given)
  if (standard !== undefined) {
    const input = fields(standard, "jsonSchema")?.["input"]
    const validate = caller(standard["validate"])
    return {
      jsonSchema: typeof input === "function" ? input({ target: "draft-07" }) : undefined,
      validate: validate === undefined ? undefined : async (value) => checkedBy(await validate(value))
    }
  }
  if (typeof given === "function") return formOf(given())
  const { jsonSchema, validate } = asFields(given)
  return { jsonSchema: await jsonSchema, validate: caller(validate) }
}

const standardOf = (given: unknown): Fields | undefined => {
  const isOpen = (typeof given === "object" && given !== null) || typeof given === "function"
  const standard = isOpen && "~standard" in given ? given["~standard"] : undefined
  return isFields(standard) ? standard : undefined
}

const asFields = (value: unknown): Fields => (isFields(value) ? value : {})

const caller = (check: unknown): InputSchema["validate"] =>
  typeof check === "function" ? (value) => Reflect.apply(check, undefined, [value]) : undefined

const checkedBy = (result: unknown) => {
  const { issues, value } = asFields(result)
  return issues === undefined ? { success: true, value } : { success: false, error: result }
}

/** A standard schema, as the AI SDK and others accept it. */
export interface StandardInput {
  readonly "~standard": {
    readonly version: 1
    readonly vendor: "kernai"
    readonly validate: (value: unknown) => { readonly value: JsonObject }
    readonly jsonSchema: {
      readonly input: () => Record<string, unknown>
      readonly output: () => Record<string, unknown>
    }
  }
}

/** Returns a JSON Schema as a standard schema. The skill checks its input itself. */
export const standard = (jsonSchema: JsonObject): StandardInput => {
  const written = () => ({ ...jsonSchema })
  return {
    "~standard": {
      version: 1,
      vendor: "kernai",
      validate: (value) => ({ value: isJsonObject(value) ? value : {} }),
      jsonSchema: { input: written, output: written }
    }
  }
}
