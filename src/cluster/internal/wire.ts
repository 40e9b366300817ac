/** The wire format of messages between runners and clients of a cluster. */

import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { Caller } from "../../Caller.ts"
import { Content } from "../../Content.ts"
import { plain } from "../../kit/json.ts"
import type { LiveEvent } from "../../store-kit/Follow.ts"
import type { RunEvent } from "../../RunEvent.ts"
import type { Resumption as HowToResume } from "../../RunOptions.ts"
import { type Answer as AnswerOfPerson, decisionOf } from "../../RunState.ts"

// The type keeps the message complete: a field that an answer gets is needed here, too.
const answerFields = {
  callId: Schema.String,
  approved: Schema.Boolean,
  reason: Schema.optionalKey(Schema.String),
  by: Schema.optionalKey(Schema.String),
  input: Schema.optionalKey(Schema.Json),
  values: Schema.optionalKey(Schema.Record(Schema.String, Schema.Json)),
  output: Schema.optionalKey(Schema.Json),
  dismissed: Schema.optionalKey(Schema.Boolean)
} satisfies { readonly [field in keyof AnswerOfPerson]-?: unknown }

const Answer = Schema.Struct(answerFields)

const CallError = Schema.Struct({
  name: Schema.String,
  message: Schema.String,
  recoverable: Schema.Boolean,
  fields: Schema.optionalKey(Schema.Json)
})

const Recovery = Schema.Union([
  Schema.Literals(["retry", "fail"]),
  Schema.Struct({
    resolve: Schema.Struct({
      output: Schema.optionalKey(Schema.Array(Content)),
      error: Schema.optionalKey(CallError)
    })
  })
])

/** The options for resuming a run at rest. */
export const Resumption = Schema.Struct({
  answers: Schema.optionalKey(Schema.Array(Answer)),
  caller: Schema.optionalKey(Caller),
  recover: Schema.optionalKey(Schema.Record(Schema.String, Recovery)),
  context: Schema.optionalKey(Schema.Record(Schema.String, Schema.Json)),
  rewind: Schema.optionalKey(Schema.Boolean)
})

/** Returns the options of a resume as a message, without options that are not set. */
export const resumption = ({ answers, caller, context, recover, rewind }: HowToResume): typeof Resumption.Type => ({
  ...(answers === undefined ? {} : { answers: answers.map(decisionOf) }),
  ...(caller === undefined ? {} : { caller }),
  ...(context === undefined ? {} : { context }),
  ...(recover === undefined ? {} : { recover }),
  ...(rewind === undefined ? {} : { rewind })
})

// ---------------------------------------------------------------- live events

/** Returns true if a value of a peer is a live event: an object with a scope and a type, and without a revision. */
const isEvent = (value: unknown): value is RunEvent =>
  Schema.is(
    Schema.Struct({
      type: Schema.String,
      runId: Schema.String,
      rootRunId: Schema.String,
      step: Schema.Finite,
      depth: Schema.Finite,
      at: Schema.Finite,
      revision: Schema.optionalKey(Schema.Never)
    })
  )(value)

const decode = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.declare(isEvent, { expected: "a live event of a run" }))
)

/** Encodes a live event. */
export const encodeLive = ({ after, event, isFirst }: LiveEvent) => ({
  after,
  isFirst,
  event: JSON.stringify(plain(event))
})

/** Decodes a live event. Returns none for an event of an unknown version. */
export const decodeLive = (live: ReturnType<typeof encodeLive>): Option.Option<LiveEvent> =>
  Option.map(decode(live.event), (event) => ({ ...live, event }))
