/**
 * One message of a conversation: who speaks, and the parts of what is said (AC-2, BP-150).
 *
 * Messages are appended, never rebuilt: a message is frozen, so a provider may
 * encode it once and keep the result.
 *
 * @since 0.1.0
 */

import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaGetter from "effect/SchemaGetter"
import * as Content from "./Content.ts"
import * as Fault from "./internal/base/fault.ts"
import { freeze } from "./internal/base/snapshot.ts"
import { BlockValidationError } from "./KernelError.ts"

/**
 * Who speaks.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Role = Schema.Literals(["system", "user", "assistant", "tool"])
/**
 * One of `system`, `user`, `assistant`, `tool`.
 *
 * @category models
 * @since 0.1.0
 */
export type Role = typeof Role.Type

/**
 * One message.
 *
 * @category models
 * @since 0.1.0
 */
export interface Message {
  readonly role: Role
  readonly content: ReadonlyArray<Content.Content>
  readonly name?: string
  readonly metadata?: Content.JsonObject
}

/**
 * A message on the wire. A string is one text part, `null` is no part.
 *
 * @category models
 * @since 0.1.0
 */
export interface Encoded {
  readonly role: Role
  readonly content: string | null | ReadonlyArray<Content.Json>
  readonly name?: string
  readonly metadata?: Content.JsonObject
}

/**
 * The codec. Unknown content types are kept verbatim.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Message: Schema.Codec<Message, Encoded> = (() => {
  const Contents = Schema.Array(Content.Content)
  const Parts = Schema.Union([Schema.String, Schema.Null, Contents]).pipe(
    Schema.decodeTo(Schema.toType(Contents), {
      decode: SchemaGetter.transform(partsOf),
      encode: SchemaGetter.transform((content: ReadonlyArray<Content.Content>) => content)
    })
  )
  const Fields = Schema.Struct({
    role: Role,
    content: Parts,
    name: Schema.optionalKey(Schema.String),
    metadata: Schema.optionalKey(Schema.JsonObject)
  })
  // The type side is declared, not a struct: a struct would be rebuilt, and its copy would not be frozen.
  return Fields.pipe(
    Schema.decodeTo(Schema.declare(isMessage, { expected: "a message" }), {
      decode: SchemaGetter.transform((message: Message) => freeze(message)),
      encode: SchemaGetter.transform((message: Message) => message)
    })
  )
})()

/**
 * What a message may be made of: a string is a text part.
 *
 * @category models
 * @since 0.1.0
 */
export type Input = string | Content.Content | ReadonlyArray<string | Content.Content>

/**
 * A message of any role.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (
  role: Role,
  content: Input | null,
  options?: { readonly name?: string; readonly metadata?: Content.JsonObject }
): Message => freeze({ role, content: partsOf(content), ...options })

/**
 * What a model is told before all else: its instructions and the rules.
 *
 * @category constructors
 * @since 0.1.0
 */
export const system = (content: Input): Message => make("system", content)

/**
 * What the user says, and what the kernel answers to blocks.
 *
 * @category constructors
 * @since 0.1.0
 */
export const user = (content: Input): Message => make("user", content)

/**
 * What the model says.
 *
 * @category constructors
 * @since 0.1.0
 */
export const assistant = (content: Input): Message => make("assistant", content)

/**
 * What a native tool call gave: `tool_result` contents.
 *
 * @category constructors
 * @since 0.1.0
 */
export const tool = (content: Input): Message => make("tool", content)

/**
 * The message as text: text parts joined, media as `[KIND:ID]`, thinking left out, the rest in its text form (BP-150).
 *
 * @category combinators
 * @since 0.1.0
 */
export const text = (message: Message): string => {
  let out = ""
  for (const content of message.content) {
    if (content.type === "text") out += content.text
    else if (Content.isMedia(content)) out += `[${content.type}:${content.fileId ?? content.url ?? ""}]`
    else if (content.type !== "thinking") out += Content.toText(content)
  }
  return out
}

/**
 * The media among the parts.
 *
 * @category combinators
 * @since 0.1.0
 */
export const media = (message: Message): ReadonlyArray<Content.MediaContent> => message.content.filter(Content.isMedia)

/**
 * Is there a medium among the parts?
 *
 * @category combinators
 * @since 0.1.0
 */
export const hasMedia = (message: Message): boolean => message.content.some(Content.isMedia)

/**
 * Reads a message from the wire; a fault has its path from the message, such as `/content/0/text`.
 *
 * @category codecs
 * @since 0.1.0
 */
export const decode = (input: unknown): Result.Result<Message, BlockValidationError> =>
  Result.mapError(
    Schema.decodeUnknownResult(Message)(input),
    (error) => new BlockValidationError(Fault.ofSchema(error))
  )

/**
 * Writes a message for the wire.
 *
 * @category codecs
 * @since 0.1.0
 */
export const encode = (message: Message): Content.JsonObject => ({
  role: message.role,
  content: message.content.map(Content.encode),
  ...(message.name === undefined ? {} : { name: message.name }),
  ...(message.metadata === undefined ? {} : { metadata: message.metadata })
})

/**
 * Tells a message from any other value, by its role, one of the four, and its list of parts.
 *
 * @category guards
 * @since 0.1.0
 */
export function isMessage(value: unknown): value is Message {
  return (
    typeof value === "object" &&
    value !== null &&
    "role" in value &&
    Role.literals.some((role) => role === value.role) &&
    "content" in value &&
    Array.isArray(value.content) &&
    value.content.every(Content.isContent)
  )
}

function partsOf(content: Input | null): ReadonlyArray<Content.Content> {
  if (content === null) return []
  if (typeof content === "string") return [Content.text(content)]
  return "type" in content ? [content] : content.map((part) => (typeof part === "string" ? Content.text(part) : part))
}
