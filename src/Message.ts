/**
 * One message of a conversation: a role, and the parts of its content.
 *
 * Messages are frozen and never copied, so a provider may encode each one once and cache the result.
 *
 * @since 0.1.0
 */

import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaGetter from "effect/SchemaGetter"
import * as Content from "./Content.ts"
import { fieldsOf, Role } from "./internal/words/messageFields.ts"
import * as Fault from "./kit/fault.ts"
import { freeze } from "./kit/snapshot.ts"
import { BlockValidationError } from "./KernelError.ts"

export { Role }

/**
 * The role of a message: `system`, `user`, `assistant` or `tool`.
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
export interface Message extends Schema.Struct.Type<
  ReturnType<typeof fieldsOf<Schema.$Array<Schema.Schema<Content.Content>>>>
> {}

/**
 * The wire form of a message. A string is one text part, `null` is no part.
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
 * The codec of messages. Unknown content types are kept verbatim.
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
  const Fields = Schema.Struct({ ...fieldsOf(Parts), metadata: Schema.optionalKey(Schema.JsonObject) })
  // Declared instead of a struct, because a struct would build an unfrozen copy.
  return Fields.pipe(
    Schema.decodeTo(Schema.declare(isMessage, { expected: "a message" }), {
      decode: SchemaGetter.transform((message: Message) => freeze(message)),
      encode: SchemaGetter.transform((message: Message) => message)
    })
  )
})()

/**
 * The content of a new message. A string becomes a text part.
 *
 * @category models
 * @since 0.1.0
 */
export type Input = string | Content.Content | ReadonlyArray<string | Content.Content>

/**
 * Creates a message of any role.
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
 * Creates the system message: the instructions and rules of an agent.
 *
 * @category constructors
 * @since 0.1.0
 */
export const system = (content: Input): Message => make("system", content)

/**
 * Creates a user message. In the block dialect, results are user messages too.
 *
 * @category constructors
 * @since 0.1.0
 */
export const user = (content: Input): Message => make("user", content)

/**
 * Creates a message of the model.
 *
 * @category constructors
 * @since 0.1.0
 */
export const assistant = (content: Input): Message => make("assistant", content)

/**
 * Creates a message with the results of native calls, as `tool_result` contents.
 *
 * @category constructors
 * @since 0.1.0
 */
export const tool = (content: Input): Message => make("tool", content)

/**
 * Returns a message as text: text parts joined, media as `[KIND:ID]`, other parts in their text form, without thinking.
 *
 * @category getters
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
 * Returns the sources that messages name: pages that a vendor's search found, and passages that a reply cites.
 *
 * @category getters
 * @since 0.1.0
 */
export const sources = (messages: ReadonlyArray<Message>): ReadonlyArray<Content.Source> =>
  messages.flatMap(({ content }) => content.filter((part) => part.type === "source"))

/**
 * Returns the media of a message.
 *
 * @category getters
 * @since 0.1.0
 */
export const media = (message: Message): ReadonlyArray<Content.MediaContent> => message.content.filter(Content.isMedia)

/**
 * Decodes a message. Fails with the path from the message to the fault, such as `/content/0/text`.
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
 * Encodes a message.
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
 * Returns true for a message: an object with one of the four roles and a list of contents.
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
