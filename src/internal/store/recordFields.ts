/**
 * The stored form of the parts of records and states that hold no contents.
 */

import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as SchemaGetter from "effect/SchemaGetter"
import type * as Calls from "../../Call.ts"
import type { Generation } from "../../Generation.ts"
import { Capability, type Model, type Price } from "../../Model.ts"
import * as Plan from "../../Plan.ts"
import type * as Run from "../../RunState.ts"
import * as Usage from "../../Usage.ts"
import * as Fault from "../../kit/fault.ts"
import * as Storable from "../../kit/storable.ts"
import type { Asking } from "../words/asking.ts"

/** A schema for each field of a type, including optional ones. */
export type FieldsOf<T> = { readonly [K in keyof T]-?: Schema.Constraint }

/**
 * Returns a struct with every field of a type. A missing field, or one that accepts less than the type, does not
 * compile.
 */
export const exactly =
  <T>() =>
  <F extends FieldsOf<T>>(fields: Takes<T, F>) =>
    Schema.Struct(fields)

/** Fields of a struct that accept every value of a type. */
export type Takes<T, F extends Schema.Struct.Fields> = T extends Schema.Struct.Type<F> ? F : never

/** Returns a field that is not written if it is undefined. */
export const absent = <S extends Schema.Constraint>(schema: S) =>
  Schema.withDecodingDefaultKey<Schema.UndefinedOr<S>>(Effect.succeed(undefined))(Schema.UndefinedOr(schema))

/** Returns a field that is not written if it has its usual value. */
export const otherwise = <S extends Schema.Constraint>(schema: S, usual: S["Type"]) =>
  Schema.withDecodingDefaultKey<S>(Effect.succeed(usual))(schema)

type OutcomeOf<T extends Run.Outcome["type"]> = Extract<Run.Outcome, { readonly type: T }>

export const make = () => {
  const words = makeWords()
  return {
    ...words,
    ...makeCalls(words),
    ...makeStops(words),
    outcome: makeOutcome(),
    modelArgs: makeModelArgs(words),
    usage: makeUsage(),
    scope: {
      rootRunId: Schema.optionalKey(Schema.String),
      step: Schema.Finite,
      depth: otherwise(Schema.Finite, 0),
      taskId: Schema.optionalKey(Schema.String)
    },
    range: Schema.Tuple([Schema.Natural, Schema.Natural])
  }
}

type Words = ReturnType<typeof makeWords>

const makeWords = () => {
  const strings = Schema.Array(Schema.String)

  const kind = Schema.Literals(["skill", "protocol", "builtin", "task", "agent", "handoff"])

  const dialect = Schema.Literals(["blocks", "tools"])

  const finishReason = Schema.Literals([
    "stop",
    "length",
    "content-filter",
    "tool-calls",
    "error",
    "pause",
    "other",
    "unknown"
  ])

  const phase = Schema.Literals([
    "run_started",
    "turn_started",
    "turn_prepared",
    "model_started",
    "model_completed",
    "tool_calls_started",
    "tool_call_started",
    "tool_call_completed",
    "tool_calls_completed",
    "turn_completed"
  ])

  const source = Schema.Literals(["caller", "model_done", "max_turns"])

  return { strings, kind, dialect, finishReason, phase, source }
}

export const effects = Schema.Literals(["read", "idempotent", "write"])

const makeCalls = ({ kind }: Words) => {
  const callError = exactly<Calls.CallError>()({
    name: Schema.String,
    message: Schema.String,
    recoverable: Schema.Boolean
  })

  const call = exactly<Calls.Call>()({
    callId: Schema.String,
    name: Schema.NullOr(Schema.String),
    input: Storable.Json,
    kind,
    review: otherwise(Schema.Literals(["unreviewed", "accepted"]), "unreviewed"),
    blockName: Schema.optionalKey(Schema.String),
    skill: Schema.optionalKey(Schema.String),
    effects: Schema.optionalKey(effects),
    fault: Schema.optionalKey(callError)
  })

  const hosted = exactly<Calls.HostedCall>()({
    callId: Schema.String,
    name: Schema.String,
    input: Storable.Json,
    isError: Schema.optionalKey(Schema.Literal(true)),
    sources: Schema.Array(
      exactly<Calls.HostedSource>()({ url: Schema.String, title: Schema.optionalKey(Schema.String) })
    )
  })

  const answer = exactly<Run.Answer>()({
    callId: Schema.String,
    approved: Schema.Boolean,
    reason: Schema.optionalKey(Schema.String),
    by: Schema.optionalKey(Schema.String),
    input: Schema.optionalKey(Storable.Json),
    values: Schema.optionalKey(Storable.JsonObject),
    dismissed: Schema.optionalKey(Schema.Boolean)
  })

  const asking = exactly<Asking>()({
    message: Schema.String,
    form: Schema.optionalKey(Storable.JsonObject),
    url: Schema.optionalKey(Schema.String),
    name: Schema.optionalKey(Schema.String)
  })

  const question = exactly<Run.Question>()({
    callId: Schema.String,
    name: Schema.String,
    input: Storable.Json,
    reason: Schema.String,
    asking: Schema.optionalKey(asking),
    answerBy: Schema.optionalKey(Schema.Finite),
    answer: Schema.optionalKey(answer)
  })

  return { callError, call, hosted, answer, question }
}

/** Returns the schemas of pauses, ends, failures and the status of a run. */
const makeStops = (words: Words) => {
  const { source } = words
  const completing = exactly<NonNullable<Run.RunState["completing"]>>()({
    source,
    reason: Schema.optionalKey(Schema.String),
    metadata: Schema.optionalKey(Storable.Json)
  })

  const forkedFrom = exactly<Run.ForkedFrom>()({ runId: Schema.String, revision: Schema.Int })

  const handoff = exactly<NonNullable<Run.RunState["handoff"]>>()({ agent: Schema.String, turn: Schema.Int })

  const stop = Schema.Union([
    exactly<Extract<Run.Stop, { type: "pause" }>>()({
      type: Schema.Literal("pause"),
      reason: Schema.optionalKey(Schema.String),
      metadata: Schema.optionalKey(Storable.Json)
    }),
    exactly<Extract<Run.Stop, { type: "finish" }>>()({
      type: Schema.Literal("finish"),
      reason: Schema.optionalKey(Schema.String),
      metadata: Schema.optionalKey(Storable.Json)
    })
  ])

  const errorInfo = exactly<Run.ErrorInfo>()({
    tag: Schema.String,
    message: Schema.String,
    fields: Schema.optionalKey(Storable.JsonObject)
  })

  const callLeft = exactly<Run.CallLeft>()({
    callId: Schema.String,
    name: Schema.NullOr(Schema.String),
    effects: Schema.optionalKey(effects)
  })

  return { callLeft, completing, forkedFrom, handoff, stop, errorInfo, status: makeStatus(words, errorInfo) }
}

const makeStatus = ({ phase, source }: Words, error: Schema.Codec<Run.ErrorInfo, unknown>) =>
  Schema.Union([
    exactly<Extract<Run.Status, { type: "running" }>>()({ type: Schema.Literal("running"), phase }),
    exactly<Extract<Run.Status, { type: "paused" }>>()({
      type: Schema.Literal("paused"),
      phase,
      reason: Schema.String,
      metadata: Storable.Json,
      createdAt: Schema.Finite
    }),
    exactly<Extract<Run.Status, { type: "completed" }>>()({
      type: Schema.Literal("completed"),
      phase,
      source,
      reason: Schema.optionalKey(Schema.String),
      metadata: Schema.optionalKey(Storable.Json),
      createdAt: Schema.Finite
    }),
    exactly<Extract<Run.Status, { type: "failed" }>>()({
      type: Schema.Literal("failed"),
      phase,
      error,
      createdAt: Schema.Finite
    }),
    exactly<Extract<Run.Status, { type: "cancelled" }>>()({
      type: Schema.Literal("cancelled"),
      phase,
      reason: Schema.optionalKey(Schema.String),
      by: Schema.optionalKey(Schema.String),
      createdAt: Schema.Finite
    })
  ])

const makeOutcome = () =>
  Schema.Union([
    exactly<OutcomeOf<"workflow">>()({
      type: Schema.Literal("workflow"),
      plan: Plan.Plan,
      note: Schema.optionalKey(Schema.String)
    }),
    exactly<OutcomeOf<"tools">>()({ type: Schema.Literal("tools"), note: Schema.optionalKey(Schema.String) }),
    exactly<OutcomeOf<"final">>()({ type: Schema.Literal("final"), text: Schema.String }),
    exactly<OutcomeOf<"prose">>()({ type: Schema.Literal("prose"), text: Schema.String }),
    exactly<OutcomeOf<"corrective">>()({
      type: Schema.Literal("corrective"),
      reason: Schema.Literals(["informational", "stall", "cut", "empty", "output", "plan", "loop"]),
      corrective: Schema.String
    })
  ])

const makeModelArgs = ({ strings }: Words) => {
  const rates = {
    inputPerMillion: Schema.Finite,
    outputPerMillion: Schema.Finite,
    cachedPerMillion: Schema.optionalKey(Schema.Finite),
    cacheWritePerMillion: Schema.optionalKey(Schema.Finite)
  }

  const model = exactly<Model>()({
    id: Schema.String,
    capabilities: Schema.Array(Capability),
    provider: Schema.optionalKey(Schema.String),
    contextWindow: Schema.optionalKey(Schema.Finite),
    maxOutputTokens: Schema.optionalKey(Schema.Finite),
    dialect: Schema.optionalKey(Schema.Literals(["blocks", "tools"])),
    api: Schema.optionalKey(Schema.Literals(["chat", "responses"])),
    price: Schema.optionalKey(
      exactly<Price>()({
        ...rates,
        longPrompt: Schema.optionalKey(exactly<NonNullable<Price["longPrompt"]>>()({ ...rates, above: Schema.Finite })),
        hosted: Schema.optionalKey(Schema.Record(Schema.String, Schema.Finite))
      })
    )
  })

  const generation = exactly<Generation>()({
    temperature: Schema.optionalKey(Schema.Finite),
    maxTokens: Schema.optionalKey(Schema.Finite),
    topP: Schema.optionalKey(Schema.Finite),
    stopSequences: Schema.optionalKey(strings),
    seed: Schema.optionalKey(Schema.Finite),
    thinking: Schema.optionalKey(
      exactly<NonNullable<Generation["thinking"]>>()({
        budget: Schema.optionalKey(Schema.Finite),
        effort: Schema.optionalKey(Schema.String)
      })
    ),
    extra: Schema.optionalKey(Storable.JsonObject)
  })

  return exactly<Run.ModelArgs>()({
    model: Schema.optionalKey(model),
    generation: Schema.optionalKey(generation),
    cacheBreakpoints: Schema.optionalKey(Schema.Array(Schema.Int))
  })
}

/** Accepts any counts, because usage is checked where it is created. */
const makeUsage = (): Schema.Codec<Usage.Usage, unknown> =>
  Schema.Unknown.pipe(
    Schema.decodeTo(
      Schema.declare((value): value is Usage.Usage => typeof value === "object", { expected: "a usage" }),
      {
        decode: SchemaGetter.transformEffect((input) => {
          const usage = usageOf(input)
          return usage === undefined
            ? Effect.fail(Fault.toIssue({ path: "", reason: "expected a usage" }))
            : Effect.succeed(usage)
        }),
        encode: SchemaGetter.transform(Usage.encode)
      }
    )
  )

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
