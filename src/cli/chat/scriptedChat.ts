/**
 * A model whose replies are in a file. The number of replies in the conversation gives the next one, so a chat can
 * continue in another process.
 */

import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Schema from "effect/Schema"
import * as Read from "../../kit/files.ts"
import { ProviderError } from "../../KernelError.ts"
import type { ProviderShape } from "../../Provider.ts"
import * as MockProvider from "../../testing/MockProvider.ts"
import { unreadable, usage } from "../exit.ts"
import { excerpt } from "../terminalText.ts"

const Reply = Schema.Union([
  Schema.String,
  Schema.Struct({
    thinking: Schema.optionalKey(Schema.String),
    text: Schema.optionalKey(Schema.String),
    calls: Schema.optionalKey(
      Schema.Array(Schema.Struct({ name: Schema.String, input: Schema.optionalKey(Schema.Json) }))
    )
  })
])

const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(Schema.NonEmptyArray(Reply)), {
  onExcessProperty: "error"
})

const maxBytes = 4 * 1024 * 1024

/** Reads the replies of a file: a JSON list of texts, or of `{ thinking, text, calls }`. */
export const provider = Effect.fnUntraced(function* (file: string) {
  const name = excerpt(file, 80)
  const fs = yield* FileSystem.FileSystem
  const text = yield* Effect.mapError(Read.text(fs, file, maxBytes), (refusal) => unreadable(name, refusal))
  const replies = yield* Effect.mapError(decode(text), () =>
    usage(`${name} is not a JSON list of replies: texts, or { "thinking", "text", "calls": [{ "name", "input" }] }`)
  )
  return make(replies)
})

/** Creates a model that gives these replies, one after the other. */
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
    detail: `the script has no reply left after ${count}`
  })
