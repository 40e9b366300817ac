/**
 * Questions to a person and requests to a model that a call makes while it runs.
 */

import * as Schema from "effect/Schema"
import type { Message } from "../../Message.ts"
import type { FinishReason } from "../../StreamPart.ts"
import type { Usage } from "../../Usage.ts"
import type { Json, JsonObject } from "../../kit/json.ts"

/**
 * A question of a call to a person: to fill in a form, to open a URL, or, with neither, to agree.
 *
 * @category models
 * @since 0.1.0
 */
export const Asking = Schema.Struct({
  /** The text for the person. */
  message: Schema.String,
  /** JSON Schema of the values: an object whose properties are texts, numbers, booleans or choices. */
  form: Schema.optionalKey(Schema.Record(Schema.String, Schema.Json)),
  /** A URL that the person opens in a browser. */
  url: Schema.optionalKey(Schema.String),
  /** The name by which a policy decides whether a person is asked. Default: the name of the call. */
  name: Schema.optionalKey(Schema.String),
  /** The time at which the question is declined unless it was answered, in milliseconds since the epoch. */
  answerBy: Schema.optionalKey(Schema.Finite),
  /** JSON Schema of the result, for a call that somebody else runs. The answer gives the result as its `output`. */
  output: Schema.optionalKey(Schema.Record(Schema.String, Schema.Json)),
  /** Present if the call waits for that time alone. No person is shown the question. */
  isTimer: Schema.optionalKey(Schema.Literal(true))
})

/**
 * A question of a call to a person: to fill in a form, to open a URL, or, with neither, to agree.
 *
 * @category models
 * @since 0.1.0
 */
export interface Asking extends Schema.Schema.Type<typeof Asking> {}

/**
 * The reply of a person: accepted with the values of the form, or with the result of an external call, declined, or
 * dismissed. A question that nobody answered in time is declined as `isLate`.
 *
 * @category models
 * @since 0.1.0
 */
export type Reply =
  | { readonly _tag: "Accepted"; readonly values: JsonObject; readonly output?: Json }
  | { readonly _tag: "Declined"; readonly reason?: string; readonly isLate?: true }
  | { readonly _tag: "Dismissed" }

/**
 * A request of a call to a model, for one reply without tools.
 *
 * @category models
 * @since 0.1.0
 */
export interface Sampling {
  readonly messages: ReadonlyArray<Message>
  readonly system?: string
  /** Maximum length of the reply in tokens. */
  readonly maxTokens: number
  readonly temperature?: number
  readonly stopSequences?: ReadonlyArray<string>
  /** The name by which a policy decides whether the model is asked. Default: the name of the call. */
  readonly name?: string
}

/**
 * The reply of a model to a call.
 *
 * @category models
 * @since 0.1.0
 */
export interface Sampled {
  readonly text: string
  /** The id of the model that replied. */
  readonly model: string
  readonly finishReason: FinishReason
  /** Null if the provider reported none. */
  readonly usage: Usage | null
}
