/**
 * The schemas of calls and their outcomes. The types of `Call.ts` are derived from them.
 */

import * as Schema from "effect/Schema"
import { perObject } from "../../kit/perObject.ts"
import { lazily, otherwise } from "../../kit/schemas.ts"
import * as Storable from "../../kit/storable.ts"
import { type ContentCodec, expense, message, ownId } from "./messageSchema.ts"

export const callKind = lazily(() => Schema.Literals(["skill", "protocol", "builtin", "task", "agent", "handoff"]))

export const effects = lazily(() => Schema.Literals(["read", "idempotent", "write"]))

/** What its target declared when a call was launched, where newer code may only restrict it. */
export const terms = lazily(() =>
  Schema.Struct({
    timeoutMillis: Schema.optionalKey(Schema.Finite),
    /** The keys of the credentials of its skill. */
    credentials: Schema.optionalKey(Schema.Array(Schema.String))
  })
)

export const callError = lazily(() =>
  Schema.Struct({
    name: Schema.String,
    message: Schema.String,
    recoverable: Schema.Boolean,
    /** The fields of a failure that fits the `failure` schema of its skill, in their encoded form. */
    fields: Schema.optionalKey(Storable.Json)
  })
)

/** Why a person approved a call, if the person gave a reason, and who did. */
const approval = lazily(() => Schema.Struct({ reason: Schema.String, by: Schema.optionalKey(Schema.String) }))

const review = lazily(() => Schema.Literals(["unreviewed", "accepted"]))

export const call = lazily(() =>
  Schema.Struct({
    callId: ownId(),
    /** The name as written, stripped; null for a command block without a name. */
    name: Schema.NullOr(Schema.String),
    input: Storable.Json,
    kind: callKind(),
    review: review(),
    /** The name attribute of a protocol block. */
    blockName: Schema.optionalKey(Schema.String),
    /**
     * The skill that a protocol call resolved to when a policy decided about it. The call runs only if it still
     * resolves to that skill.
     */
    skill: Schema.optionalKey(Schema.String),
    approval: Schema.optionalKey(approval()),
    /** Answered at once with an id, while the work goes on beside the turns of its run. */
    background: Schema.optionalKey(Schema.Literal(true)),
    /** The effect of repeating the call. Known once the call is in flight. */
    effects: Schema.optionalKey(effects()),
    /** What its target declared when it was launched. */
    terms: Schema.optionalKey(terms()),
    /** The reason why the call cannot run. The model receives this error instead of a result. */
    fault: Schema.optionalKey(callError())
  })
)

/** A call of a reply. None of them is reviewed yet. */
export const requestedCall = lazily(() =>
  Schema.Struct({ ...call().fields, review: otherwise(review(), "unreviewed") })
)

export const hostedSource = lazily(() =>
  Schema.Struct({ url: Schema.String, title: Schema.optionalKey(Schema.String) })
)

export const hostedCall = lazily(() =>
  Schema.Struct({
    callId: Schema.String,
    /** The name of the tool, such as `web_search` or `code_execution`. */
    name: Schema.String,
    /** The request of the model: the query, or the code. */
    input: Storable.Json,
    /** Present if the call failed at the vendor. */
    isError: Schema.optionalKey(Schema.Literal(true)),
    /** The pages it found. */
    sources: Schema.Array(hostedSource())
  })
)

export const callOutcome = perObject((content: ContentCodec) =>
  Schema.Struct({
    output: Schema.optionalKey(Schema.Array(content)),
    error: Schema.optionalKey(callError()),
    /** The value that `output` shows as text: a list, a number, a boolean or null. */
    value: Schema.optionalKey(Storable.Json),
    /** Answered without running, by a hook, a policy or a person. */
    skipped: Schema.optionalKey(Schema.Boolean),
    /** A whole message from a protocol, shown to the model as it is. */
    message: Schema.optionalKey(message(content)),
    /** Facts for the host, never shown to the model. */
    metadata: Schema.optionalKey(Storable.JsonObject),
    durationMs: Schema.optionalKey(Schema.Finite)
  })
)

/** The usage of a child run. */
export const childExpense = lazily(() => Schema.Struct({ ...expense().fields, turns: Schema.Finite }))

export const callResult = perObject((content: ContentCodec) =>
  Schema.Struct({
    callId: ownId(),
    name: Schema.NullOr(Schema.String),
    kind: callKind(),
    input: Storable.Json,
    approval: Schema.optionalKey(approval()),
    ...callOutcome(content).fields,
    /** The usage of a child run, which is added to the run's own. */
    spent: Schema.optionalKey(childExpense())
  })
)
