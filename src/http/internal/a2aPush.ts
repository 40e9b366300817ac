/** Configurations of push notifications: where a client wants to be told about the changes of a task. */

import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { isJsonObject, type Json, type JsonObject } from "../../kit/json.ts"
import { sha256 } from "../../kit/sha256.ts"
import type { HttpProblem } from "../HttpProblem.ts"
import { type Call, read } from "./a2aRequest.ts"

// A secret becomes the value of a header.
const Secret = Schema.RedactedFromValue(
  Schema.String.check(Schema.isPattern(/^[\x21-\x7e](?:[\x20-\x7e]{0,4094}[\x21-\x7e])?$/))
)

/** A configuration, and the version of the protocol in which its client set it. */
export const PushConfig = Schema.Struct({
  id: Schema.String.check(Schema.isNonEmpty(), Schema.isMaxLength(256)),
  url: Schema.String.check(Schema.isNonEmpty(), Schema.isMaxLength(2_000)),
  token: Schema.optionalKey(Secret),
  authentication: Schema.optionalKey(
    Schema.Struct({
      scheme: Schema.String.check(Schema.isPattern(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$/)),
      credentials: Schema.optionalKey(Secret)
    })
  ),
  version: Schema.Literals(["1.0", "0.3"])
})

/** A configuration, and the version of the protocol in which its client set it. */
export type PushConfig = typeof PushConfig.Type

/** Decodes a configuration. One without an id has the same id each time it is sent. */
export const decode = Effect.fnUntraced(function* (
  given: JsonObject,
  version: Call["version"]
): Effect.fn.Return<PushConfig, HttpProblem> {
  const sent = withoutEmpty(given)
  const { authentication = null, id, token = null, url = null } = sent
  const digest = yield* sha256(JSON.stringify([url, token, authentication]))
  return yield* read(PushConfig, { ...sent, id: id ?? digest.slice(0, 24), version })
})

/** Removes empty texts, by which clients of protocol buffers say that a field is absent. */
const withoutEmpty = (value: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(value).flatMap(([name, field]): ReadonlyArray<[string, Json]> =>
      field === "" || field === null ? [] : [[name, isJsonObject(field) ? withoutEmpty(field) : field]]
    )
  )

/** Encodes a configuration of a task for its client, whose own secrets are in it. */
export const shown = (taskId: string, config: PushConfig): JsonObject => {
  const { version: _, ...sent } = encode(config)
  return { ...sent, taskId }
}

/** Encodes a configuration with its secrets. */
export const encode = Schema.encodeSync(PushConfig)

/** Returns the headers that prove to the receiver who sends a notification. */
export const headersOf = ({ authentication, token }: PushConfig): Record<string, string> => ({
  ...(token === undefined ? {} : { "x-a2a-notification-token": Redacted.value(token) }),
  ...(authentication?.credentials === undefined
    ? {}
    : { authorization: `${authentication.scheme} ${Redacted.value(authentication.credentials)}` })
})
