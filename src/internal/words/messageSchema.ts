/**
 * The schemas of messages and usage as they are stored, and how stored values are written and copied.
 */

import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as SchemaGetter from "effect/SchemaGetter"
import * as Contents from "../../Content.ts"
import type { BlockValidationError, Content } from "../../Content.ts"
import * as Usage from "../../Usage.ts"
import * as Fault from "../../kit/fault.ts"
import { perObject } from "../../kit/perObject.ts"
import { isFields, lazily, mapping, type Visit } from "../../kit/schemas.ts"
import * as Storable from "../../kit/storable.ts"
import * as Codec from "./contentCodec.ts"
import { renamed } from "./ids.ts"
import { fieldsOf } from "./messageFields.ts"

/** Writes stored values as JSON. Values without a wire form of their own are written as they are. */
export const wire = mapping<void>("wire", { isCompact: true })

/** Renames the ids of a run's turns and calls, which contain the id of the run. */
export const ids = mapping<(id: string) => string>("ids")

const rename: Visit<(id: string) => string> = (id, own) => (typeof id === "string" ? own(id) : id)

/** The id of a turn or a call of the run itself. */
export const ownId = lazily(() => Schema.String.annotate(ids.by(rename)))

export const ownIds = lazily(() => Schema.Array(ownId()))

// ---------------------------------------------------------------- messages

/** The codec of contents, which knows the content types of an application. */
export type ContentCodec = Schema.Codec<Content, unknown>

/** Creates the codec of contents from their decoder. */
export const contentCodec = (decode: (input: unknown) => Effect.Effect<Content, BlockValidationError>): ContentCodec =>
  Schema.Unknown.pipe(
    Schema.decodeTo(Schema.declare(Codec.isContent, { expected: "a content", ...wire.by(contentJson) }), {
      // Most contents are plain text, which needs no decoding.
      decode: SchemaGetter.transformEffect((input) =>
        isText(input) ? Effect.succeed(Contents.text(input.text)) : Effect.mapError(decode(input), Fault.toIssue)
      ),
      encode: SchemaGetter.transform(Codec.encode)
    })
  )

/** A text content is its own wire form. */
const contentJson = (content: unknown): unknown =>
  isText(content) || !Codec.isContent(content) ? content : Codec.encode(content)

const isText = (value: unknown): value is { readonly type: "text"; readonly text: string } =>
  typeof value === "object" &&
  value !== null &&
  "type" in value &&
  value.type === "text" &&
  "text" in value &&
  typeof value.text === "string" &&
  Object.keys(value).length === 2

/** The codec of contents that knows the built-in types only. */
export const plainContent = lazily(() =>
  contentCodec((input) =>
    Effect.suspend(() => Effect.fromResult(Codec.decode(input, () => undefined, Storable.bounds)))
  )
)

/** A message from outside, whose call ids are not renamed. */
export const message = perObject((content: ContentCodec) =>
  Schema.Struct(fieldsOf(Schema.Array(content))).annotate(wire.by(messageJson))
)

/** Leaves out fields of the host that no message has. */
const messageJson: Visit<void> = (message) => {
  if (!isFields(message)) return message
  const { content, metadata, name, role } = message
  return {
    role,
    content: Array.isArray(content) ? content.map((part) => contentJson(part)) : content,
    ...(name === undefined ? {} : { name }),
    ...(metadata === undefined ? {} : { metadata })
  }
}

export const messages = perObject((content: ContentCodec) => Schema.Array(message(content)))

/** A message of the run's own conversation. Its calls are calls of the run. */
export const ownMessage = perObject((content: ContentCodec) => message(content).annotate(ids.by(renameCalls)))

export const ownMessages = perObject((content: ContentCodec) => Schema.Array(ownMessage(content)))

const renameCalls: Visit<(id: string) => string> = (message, own) =>
  isFields(message) && Array.isArray(message["content"])
    ? { ...message, content: message["content"].map((part) => (Codec.isContent(part) ? renamed(part, own) : part)) }
    : message

// ---------------------------------------------------------------- usage

/** Accepts any counts, because usage is checked where it is created. */
export const usage = lazily((): Schema.Codec<Usage.Usage, unknown> =>
  Schema.Unknown.pipe(
    Schema.decodeTo(Schema.declare(isUsage, { expected: "a usage", ...wire.by(usageJson) }), {
      decode: SchemaGetter.transformEffect((input) => {
        const usage = usageOf(input)
        return usage === undefined
          ? Effect.fail(Fault.toIssue({ path: "", reason: "expected a usage" }))
          : Effect.succeed(usage)
      }),
      encode: SchemaGetter.transform(Usage.encode)
    })
  )
)

export const expense = lazily(() => Schema.Struct({ usage: usage(), costUsd: Schema.optionalKey(Schema.Finite) }))

const isUsage = (value: unknown): value is Usage.Usage => typeof value === "object"

const usageJson: Visit<void> = (usage) => (isUsage(usage) ? Usage.encode(usage) : usage)

/** Decodes usage by hand, because every turn has one and renaming four fields by Schema would dominate its cost. */
const usageOf = (input: unknown): Usage.Usage | undefined => {
  if (typeof input !== "object" || input === null) return undefined
  const count = (name: string): number => {
    const found: unknown = Reflect.get(input, name)
    return typeof found === "number" && Number.isFinite(found) ? found : Number.NaN
  }
  const usage = {
    inputTokens: count("input_tokens"),
    cachedTokens: count("cached_tokens"),
    outputTokens: count("output_tokens"),
    reasoningTokens: count("reasoning_tokens"),
    ...(Reflect.get(input, "partial") === true ? ({ partial: true } as const) : {})
  }
  if (Number.isNaN(Usage.total(usage) + usage.cachedTokens + usage.reasoningTokens)) return undefined
  const writes = count("cache_write_tokens")
  return writes > 0 ? { ...usage, cacheWriteTokens: writes } : usage
}
