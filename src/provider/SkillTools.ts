/**
 * Turns skills into effect/ai tools, and tools into skills.
 *
 * Both directions keep the schema, the annotations and the results: a tool's `Readonly` and `Idempotent` become a
 * skill's `effects`, a declared failure is sent to the model, and media stay media. A toolkit still runs its own tools.
 *
 * @since 0.1.0
 */

import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as AiError from "effect/ai/AiError"
import * as Prompt from "effect/ai/Prompt"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { Content } from "../Content.ts"
import * as Contents from "../Content.ts"
import { isA } from "../kit/foreignCode.ts"
import type { JsonObject } from "../kit/json.ts"
import { jsonObject } from "../kit/json.ts"
import { InvalidArguments } from "../KernelError.ts"
import * as Media from "../Media.ts"
import * as Policy from "../Policy.ts"
import * as Skill from "../Skill.ts"
import { madeOf } from "./internal/messageParts.ts"
import { bytesOf } from "./internal/replyParts.ts"
import { isFields, text } from "./internal/readFields.ts"
import { scopeOf } from "./internal/skillScope.ts"

// ---------------------------------------------------------------- tools as skills

/**
 * Turns the tools of a toolkit into skills. `SkillRegistry.layer(...SkillTools.fromToolkit(toolkit))` needs the layer
 * of the toolkit's handlers. Tools that a vendor runs itself are left out.
 *
 * To ask a person before a tool runs, add the policy that `policyOf` returns.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromToolkit = <Tools extends Record<string, Tool.Any>>(
  toolkit: Toolkit.Toolkit<Tools>
): ReadonlyArray<Skill.AnySkill<Tool.HandlersFor<Tools>>> => {
  const tools: ReadonlyArray<Tool.Any> = Object.values(toolkit.tools)
  return tools
    .filter((tool) => !Tool.isProviderDefined(tool))
    .map((tool) => {
      const effects = effectsOf(tool)
      return Skill.dynamic(tool.name, {
        description: Tool.getDescription(tool) ?? "",
        inputSchema: asObject(Tool.getJsonSchema(tool)),
        effects,
        annotations: {
          readonly: Context.get(tool.annotations, Tool.Readonly),
          destructive: Context.get(tool.annotations, Tool.Destructive),
          idempotent: Context.get(tool.annotations, Tool.Idempotent),
          openWorld: Context.get(tool.annotations, Tool.OpenWorld)
        },
        execute: (input, scope) => use(toolkit, tool.name, input, scope.callId)
      })
    })
}

/**
 * Creates a policy that asks a person about calls of tools that need approval.
 *
 * @example
 * const asking = Policy.layer(SkillTools.policyOf(toolkit))
 *
 * @category policies
 * @since 0.1.0
 */
export const policyOf = <Tools extends Record<string, Tool.Any>>(
  toolkit: Toolkit.Toolkit<Tools>
): ((call: Policy.PolicyCall) => Effect.Effect<Policy.Decision, Schema.SchemaError>) => {
  const tools = new Map<string, Tool.Any>(Object.entries(toolkit.tools))
  return Effect.fnUntraced(function* (call) {
    const tool = tools.get(call.name)
    const needs = tool?.needsApproval
    if (tool === undefined || needs === undefined || needs === false) return Policy.allowed
    const asked = Policy.confirm(`'${call.name}' needs approval`)
    if (needs === true) return asked
    // A schema that needs services dies here, and a policy that dies denies the call.
    const parameters = tool.parametersSchema as unknown as Schema.ConstraintDecoder<unknown>
    const input = yield* Schema.decodeUnknownEffect(parameters)(call.input)
    const answer = needs(input, { toolCallId: call.callId, messages: [] })
    return (Effect.isEffect(answer) ? yield* answer : answer) ? asked : Policy.allowed
  })
}

// ---------------------------------------------------------------- skills as tools

/**
 * The result of a skill as a tool: text, or text with media.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Success = Schema.Union([
  Schema.String,
  Schema.Struct({
    text: Schema.String,
    media: Schema.Array(
      Schema.Struct({
        mediaType: Schema.String,
        url: Schema.optionalKey(Schema.String),
        data: Schema.optionalKey(Schema.Uint8ArrayFromBase64)
      })
    )
  })
])

/**
 * The failure of a skill as a tool, with the text shown to the model.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Failure = Schema.Struct({ error: Schema.String, message: Schema.String })

/**
 * Turns a skill into a tool.
 *
 * @category constructors
 * @since 0.1.0
 */
export const toTool = (skill: Skill.AnySkill<unknown>) =>
  Tool.dynamic(skill.name, {
    description: skill.description,
    parameters: skill.inputSchema,
    success: Success,
    failure: Failure,
    failureMode: "return",
    toModelOutput
  })
    .annotate(Tool.Readonly, skill.annotations.readonly)
    .annotate(Tool.Destructive, skill.annotations.destructive)
    .annotate(Tool.Idempotent, skill.annotations.idempotent)
    .annotate(Tool.OpenWorld, skill.annotations.openWorld)

/**
 * The type of a skill as a tool.
 *
 * @category models
 * @since 0.1.0
 */
export type SkillTool = ReturnType<typeof toTool>

/**
 * Turns skills into a toolkit that runs them: `LanguageModel.generateText({ prompt, toolkit:
 * SkillTools.toToolkit(search) })`.
 *
 * Outside a run, the scope of a skill has the id of its call, and its other ids are empty.
 *
 * @category constructors
 * @since 0.1.0
 */
export function toToolkit<const Skills extends ReadonlyArray<Skill.AnySkill<unknown>>>(
  ...skills: Skills
): Effect.Effect<Toolkit.WithHandler<Record<string, SkillTool>>, never, Skill.SkillTypes.Services<Skills[number]>>
export function toToolkit(
  ...skills: ReadonlyArray<Skill.AnySkill<unknown>>
): Effect.Effect<Toolkit.WithHandler<Record<string, SkillTool>>, never, unknown> {
  const toolkit: Toolkit.Toolkit<Record<string, SkillTool>> = Toolkit.make(...skills.map(toTool))
  const handlers = Effect.map(Effect.context<unknown>(), (services) =>
    toolkit.of(Object.fromEntries(skills.map((skill) => [skill.name, handler(skill, services)])))
  )
  return Effect.flatMap(toolkit.toHandlers(handlers), (context) => Effect.provideContext(toolkit, context))
}

// ---------------------------------------------------------------- helpers

const effectsOf = (tool: Tool.Any): Skill.Effects => {
  if (Context.get(tool.annotations, Tool.Readonly)) return "read"
  return Context.get(tool.annotations, Tool.Idempotent) ? "idempotent" : "write"
}

const asObject = (schema: unknown): JsonObject => {
  const plain = jsonObject(JSON.parse(JSON.stringify(schema)))
  return plain["type"] === "object" ? plain : { type: "object", properties: {}, ...plain }
}

/** A toolkit whose tools are known only at run time. */
interface Handlers {
  readonly handle: (
    name: string,
    params: unknown,
    toolCallId: string
  ) => Effect.Effect<Stream.Stream<Tool.HandlerResult<Tool.Any>, unknown>, unknown>
}

/** Runs a tool by its toolkit and returns its last result. */
const use = <Tools extends Record<string, Tool.Any>>(
  toolkit: Toolkit.Toolkit<Tools>,
  name: string,
  input: JsonObject,
  callId: string
): Effect.Effect<unknown, unknown, Tool.HandlersFor<Tools>> =>
  Effect.gen(function* () {
    // The input of a model is untyped until `handle` decodes it.
    const handlers = yield* toolkit as unknown as Effect.Effect<Handlers, never, Tool.HandlersFor<Tools>>
    const results = yield* handlers.handle(name, input, callId)
    const last = yield* Stream.runLast(Stream.filter(results, (result) => !result.preliminary))
    if (Option.isNone(last)) return null
    if (last.value.isFailure) return yield* Effect.fail(last.value.encodedResult)
    return last.value.modelOutput === undefined ? given(last.value.encodedResult) : last.value.modelOutput.map(shown)
  }).pipe(Effect.mapError((error) => failed(name, error)))

// Wraps a list, which would otherwise be joined into one text. Other JSON stays as it is.
const given = (value: unknown): unknown => {
  if (value === undefined) return null
  return Array.isArray(value) ? Contents.text(JSON.stringify(value)) : value
}

const shown = (part: Prompt.ToolModelOutputPart): string | Media.Media => {
  if (part.type === "text") return part.text
  const { data, mediaType } = part
  if (data instanceof URL) return Media.fromUrl(data.href, { mimeType: mediaType })
  const bytes = bytesOf(data)
  return bytes === undefined ? madeOf(mediaType) : Media.fromBytes(bytes, mediaType)
}

/**
 * Turns a failure of the toolkit into a failure of the skill. Invalid input is reported like the kernel's own errors.
 */
const failed = (skill: string, error: unknown): unknown => {
  if (AiError.isAiError(error)) {
    const { reason } = error
    return reason._tag === "ToolParameterValidationError"
      ? new InvalidArguments({ skill, path: "", detail: reason.description })
      : { _tag: reason._tag, message: reason.message }
  }
  if (typeof error === "string" || isA(error, Error)) return error
  const told = isFields(error) ? error : {}
  // A failure that JSON cannot express is reported by its tag.
  const written = Result.getOrUndefined(Result.try(() => JSON.stringify(error)))
  return { _tag: text(told, "_tag") ?? "ToolFailure", message: text(told, "message") ?? written ?? "" }
}

const handler =
  (skill: Skill.AnySkill<unknown>, services: Context.Context<unknown>) =>
  (params: unknown, context: { readonly toolCallId?: string | undefined }) =>
    Effect.suspend(() => skill.call(jsonObject(params), scopeOf(context.toolCallId ?? ""))).pipe(
      Effect.updateContext((current: Context.Context<never>) => Context.merge(services, current)),
      Effect.flatMap((value) => Effect.fromResult(Skill.toOutput(value))),
      Effect.matchCauseEffect({
        onFailure: (cause) =>
          Cause.hasInterruptsOnly(cause) ? Effect.interrupt : Effect.flatMap(failureOf(skill.name, cause), Effect.fail),
        onSuccess: (output) => Effect.succeed(toSuccess(output))
      })
    )

/** The part of a failure that a model may read. */
const failureOf = (skill: string, cause: Cause.Cause<unknown>): Effect.Effect<typeof Failure.Type> =>
  Effect.map(Skill.callError({ name: skill }, cause), ({ message, name }) => ({
    error: name,
    message
  }))

const toSuccess = ({ content, media }: Skill.Output): typeof Success.Type => {
  const told = content
    .filter((part) => !Contents.isMedia(part))
    .map((part) => (part.type === "text" ? part.text : Contents.toText(part)))
    .join("")
  const shown = [...content.flatMap(mediumOf), ...media.flatMap(({ mimeType, source }) => mediumFrom(mimeType, source))]
  return shown.length === 0 ? told : { text: told, media: shown }
}

type Shown = Exclude<typeof Success.Type, string>["media"][number]

const mediumOf = (part: Content): ReadonlyArray<Shown> => {
  if (!Contents.isMedia(part)) return []
  const mediaType = part.mediaType ?? "application/octet-stream"
  if (part.data !== undefined) return [{ mediaType, data: part.data }]
  return part.url === undefined ? [] : [{ mediaType, url: part.url }]
}

const mediumFrom = (mediaType: string, source: Media.Source): ReadonlyArray<Shown> => {
  if (source._tag === "Bytes") return [{ mediaType, data: source.bytes }]
  return source._tag === "Url" ? [{ mediaType, url: source.url }] : []
}

const toModelOutput = (result: typeof Success.Type): ReadonlyArray<Prompt.ToolModelOutputPart> => {
  if (typeof result === "string") return [Prompt.textPart({ text: result })]
  return [
    Prompt.textPart({ text: result.text }),
    ...result.media.flatMap(({ data, mediaType, url }) => {
      const source = data ?? (url !== undefined && URL.canParse(url) ? new URL(url) : undefined)
      return source === undefined ? [] : [Prompt.filePart({ mediaType, data: source })]
    })
  ]
}
