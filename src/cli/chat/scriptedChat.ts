/**
 * A model whose replies are in a file: no key and no network are needed.
 *
 * Which reply comes next is told by the conversation, so a chat that was
 * stopped goes on in another process where it was.
 */

import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Schema from "effect/Schema"
import * as Read from "../../internal/base/files.ts"
import { ProviderError } from "../../KernelError.ts"
import type { ProviderShape } from "../../Provider.ts"
import * as MockProvider from "../../testing/MockProvider.ts"
import { unread, usage } from "../exit.ts"
import { excerpt } from "../terminalText.ts"

const Reply = Schema.Union([
  Schema.String,
  Schema.Struct({
    thinking: Schema.optionalKey(Schema.String),
    text: Schema.optionalKey(Schema.String),
    calls: Schema.optionalKey(
      Schema.Array(Schema.Struct({ name: Schema.String, params: Schema.optionalKey(Schema.Json) }))
    )
  })
])

const decode = Schema.decodeUnknownEffect(
  Schema.fromJsonString(Schema.NonEmptyArray(Reply).check(Schema.isMaxLength(10_000)))
)

const largest = 4 * 1024 * 1024

/** The replies of a file: a JSON list of texts, or of `{ thinking, text, calls }`. */
export const provider = Effect.fnUntraced(function* (file: string) {
  const name = excerpt(file, 80)
  const fs = yield* FileSystem.FileSystem
  const text = yield* Effect.mapError(Read.text(fs, file, largest), (refusal) => unread(name, refusal))
  const replies = yield* Effect.mapError(decode(text), () =>
    usage(`${name} is no list of replies: a reply is a text, or { "thinking", "text", "calls" }`)
  )
  return make(replies)
})

/** A model that says the reply that is due: the number of its messages in the conversation tells which. */
export const make = (replies: ReadonlyArray<typeof Reply.Type>): ProviderShape =>
  MockProvider.named("scripted")
    .keepCalls(false)
    .withChunking(8)
    .onCall(({ messages }) => {
      const position = messages.filter(({ role }) => role === "assistant").length
      return replies[position] ?? Effect.fail(ended(replies.length))
    })

const ended = (count: number) =>
  new ProviderError({
    provider: "scripted",
    reason: "invalid_request",
    detail: `the script has ${count} replies, and all are said`
  })
