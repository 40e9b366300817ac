/**
 * Tools of the AI SDK as skills, and skills as tools of the AI SDK.
 *
 * Needs no AI SDK package: tools are recognized by their shape, as the models of `AiSdkProvider` are.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Contents from "../Content.ts"
import { DefinitionInvalid, InvalidArguments } from "../KernelError.ts"
import { jsonObject, type JsonObject } from "../kit/json.ts"
import * as Media from "../Media.ts"
import * as Skill from "../Skill.ts"
import * as Schemas from "./internal/aiSdkSchema.ts"
import { skillStream } from "./internal/skillStream.ts"
import { bytesOf } from "./internal/replyParts.ts"
import { madeOf } from "./internal/messageParts.ts"
import { type Fields, fields, isFields, string } from "./internal/readFields.ts"

/**
 * A tool of the AI SDK, such as the result of its function `tool`.
 *
 * @category models
 * @since 0.1.0
 */
export interface AiSdkTool {
  readonly description?: unknown
  readonly inputSchema: unknown
  readonly needsApproval?: unknown
  readonly toModelOutput?: unknown
  // A method, since the parameters of tools differ.
  execute?(input: never, options: never): unknown
}

/**
 * Turns a `ToolSet` into skills. Tools that a vendor runs itself, and those without `execute`, are left out.
 *
 * `needsApproval` asks a person, results before the last one of a tool that streams are preliminary, and the signal of a
 * tool is aborted when its call is interrupted. Fails with `DefinitionInvalid` for an input schema that has no JSON
 * Schema: wrap it with `asSchema` of the AI SDK.
 *
 * @example
 * const Skills = Layer.unwrap(
 *   Effect.map(AiSdkTools.fromTools({ weather }), (skills) => SkillRegistry.layer(...skills))
 * )
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromTools = (tools: {
  readonly [name: string]: AiSdkTool
}): Effect.Effect<ReadonlyArray<Skill.AnySkill>, DefinitionInvalid> =>
  Effect.forEach(
    Object.entries(tools).flatMap(([name, tool]) => {
      const { execute } = tool
      return execute === undefined ? [] : [{ name, tool, execute }]
    }),
    (given) => Effect.map(Schemas.read(given.name, given.tool.inputSchema), (schema) => toSkill(given, schema))
  )

interface Given {
  readonly name: string
  readonly tool: AiSdkTool
  readonly execute: NonNullable<AiSdkTool["execute"]>
}

const toSkill = ({ execute, name, tool }: Given, { jsonSchema, validate }: Schemas.InputSchema): Skill.AnySkill => {
  const { description, needsApproval } = tool
  const skill = Skill.dynamic(name, {
    description: String((typeof description === "function" ? description({ context: {} }) : description) ?? ""),
    inputSchema: jsonSchema,
    execute: (input, { callId, preliminary }) =>
      Effect.flatMap(checked(name, validate, input), (value) =>
        Effect.flatMap(run(tool, execute, value, callId, preliminary), (output) => shown(tool, value, callId, output))
      )
  })
  if (needsApproval === undefined || needsApproval === false) return skill
  const reason = `'${name}' needs approval`
  const asks = (input: JsonObject) =>
    Effect.promise(async () =>
      typeof needsApproval === "function"
        ? Boolean(await needsApproval(input, { toolCallId: "", messages: [], context: {} }))
        : true
    )
  return Object.assign(skill, {
    needsApproval: (input: JsonObject) => Effect.map(asks(input), (isAsked) => (isAsked ? reason : undefined))
  })
}

const checked = (skill: string, validate: Schemas.InputSchema["validate"], input: JsonObject) =>
  Effect.flatMap(Schemas.validated(validate, input), (result) =>
    Result.isSuccess(result)
      ? Effect.succeed(result.success)
      : Effect.fail(new InvalidArguments({ skill, path: "", detail: result.failure }))
  )

/** Runs a tool and returns its last result. The ones before are reported as preliminary. */
const run = (
  tool: AiSdkTool,
  execute: NonNullable<AiSdkTool["execute"]>,
  input: unknown,
  toolCallId: string,
  preliminary: (output: unknown) => Effect.Effect<void>
): Effect.Effect<unknown, unknown> =>
  Effect.scoped(
    Effect.gen(function* () {
      const controller = yield* Effect.acquireRelease(
        Effect.sync(() => new AbortController()),
        (controller) => Effect.sync(() => controller.abort())
      )
      const options = { toolCallId, messages: [], context: {}, abortSignal: controller.signal }
      const made = yield* attempt<unknown>(() => Reflect.apply(execute, tool, [input, options]))
      if (!isStream(made)) return made
      const results = made[Symbol.asyncIterator]()
      let last: unknown = null
      for (let isFirst = true; ; isFirst = false) {
        const next = yield* attempt(() => results.next())
        if (next.done === true) return last
        if (!isFirst) yield* preliminary(last)
        last = next.value
      }
    })
  )

interface ToolFailure {
  readonly _tag: "ToolFailure"
  readonly message: string
}

const failure = (message: string): ToolFailure => ({ _tag: "ToolFailure", message })

/** What a tool throws is its failure: the model reads the message. */
const attempt = <A>(body: () => A | PromiseLike<A>): Effect.Effect<A, ToolFailure> =>
  Effect.tryPromise({
    try: () => Promise.resolve().then(body),
    catch: (error) => failure(error instanceof Error ? error.message : String(error))
  })

const isStream = (value: unknown): value is AsyncIterable<unknown> =>
  typeof value === "object" && value !== null && Symbol.asyncIterator in value

// ---------------------------------------------------------------- results

/** Converts the result of a tool to what a skill returns. */
const shown = (
  { toModelOutput }: AiSdkTool,
  input: unknown,
  toolCallId: string,
  output: unknown
): Effect.Effect<unknown, unknown> =>
  typeof toModelOutput !== "function"
    ? Effect.succeed(given(output))
    : Effect.flatMap(
        attempt<unknown>(() => toModelOutput({ toolCallId, input, output })),
        (told) => modelOutput(isFields(told) ? told : {})
      )

const modelOutput = ({ reason, type, value }: Fields): Effect.Effect<unknown, unknown> => {
  switch (type) {
    case "error-text":
    case "error-json":
      return Effect.fail(failure(typeof value === "string" ? value : JSON.stringify(value)))
    case "execution-denied":
      return Effect.fail({ _tag: "Denied", message: typeof reason === "string" ? reason : "the tool was not run" })
    case "content":
      return Effect.succeed(
        Array.isArray(value) ? value.map((part: unknown) => (isFields(part) ? piece(part) : "")) : null
      )
    default:
      return Effect.succeed(given(value))
  }
}

// Wraps a list, which would otherwise be joined into one text.
const given = (value: unknown): unknown =>
  value === undefined ? null : Array.isArray(value) ? Contents.text(JSON.stringify(value)) : value

const piece = (part: Fields): string | Media.Media => {
  const mimeType = string(part, "mediaType") ?? "application/octet-stream"
  const file = fields(part, "data") ?? part
  const { data, url } = file
  if (typeof url === "string" || url instanceof URL) return Media.fromUrl(String(url), { mimeType })
  if (typeof data !== "string" && !(data instanceof Uint8Array)) return string(file, "text") ?? ""
  const bytes = bytesOf(data)
  return bytes === undefined ? madeOf(mimeType) : Media.fromBytes(bytes, mimeType)
}

// ---------------------------------------------------------------- skills as tools

/**
 * A skill as a tool of the AI SDK.
 *
 * @category models
 * @since 0.1.0
 */
export interface SkillTool {
  readonly description: string
  readonly inputSchema: Schemas.StandardInput
  /** Emits what the skill reports as preliminary, then its result. */
  readonly execute: (input: JsonObject, options: { readonly toolCallId: string }) => AsyncIterable<unknown>
  readonly needsApproval: (input: JsonObject) => Promise<boolean>
}

/**
 * Turns skills into a `ToolSet` that runs them, with the services in context: `streamText({ model, tools, prompt })`.
 * The failure of a skill is an `Error` with the message that a model may read.
 *
 * @category constructors
 * @since 0.1.0
 */
export const toTools = <R>(
  ...skills: ReadonlyArray<Skill.AnySkill<R>>
): Effect.Effect<{ readonly [name: string]: SkillTool }, never, R> =>
  Effect.map(Effect.context<R>(), (services) =>
    Object.fromEntries(
      skills.map((skill): [string, SkillTool] => [
        skill.name,
        {
          description: skill.description,
          inputSchema: Schemas.standard(skill.inputSchema),
          execute: (input, { toolCallId }) => skillStream(skill, jsonObject(input), toolCallId, services),
          needsApproval: async (input) => {
            const { needsApproval } = skill
            if (needsApproval === undefined) return false
            const reason = await Effect.runPromiseWith(services)(needsApproval(jsonObject(input)))
            return reason !== undefined
          }
        }
      ])
    )
  )
