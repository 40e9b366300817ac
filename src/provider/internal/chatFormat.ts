/**
 * The Chat Completions format for a given server dialect.
 */

import { vendorRules } from "../../kit/vendorRules.ts"
import type { Format } from "./adapter.ts"
import * as ChatReply from "./chatReply.ts"
import * as ChatRequest from "./chatRequest.ts"

/** The format of a dialect. */
export const chatFormat = (
  dialect: ChatRequest.Dialect,
  options: { readonly imageUrls?: boolean | undefined; readonly startsSlowly?: boolean | undefined } = {}
): Format<ReadonlyArray<ChatRequest.Written>> => ({
  path: () => "/chat/completions",
  startsSlowly: options.startsSlowly,
  rules: dialect.answersResults ? vendorRules.mistral : vendorRules.chat,
  media: ChatRequest.mediaOf(options.imageUrls ?? true),
  encode: ChatRequest.toMessages(dialect),
  body: (request, messages) => ChatRequest.toBody(dialect, request, messages),
  decoder: (reply) => ChatReply.decoder(dialect.name, reply)
})
