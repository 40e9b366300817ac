/**
 * The stored form of records and states, field by field.
 *
 * `exactly` wants every field of the type it describes, optional ones too, so
 * a field that is added there and forgotten here does not compile. Fields are
 * camelCase; contents and usage keep their own wire form (CP-17). What the host
 * or the model wrote is kept as it is.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as SchemaGetter from "effect/SchemaGetter"
import type * as Calls from "../Call.ts"
import type { Content } from "../Content.ts"
import type { Generation } from "../Generation.ts"
import type { Message } from "../Message.ts"
import type { Model, Price } from "../Model.ts"
import * as Plan from "../Plan.ts"
import type * as Events from "../RunEvent.ts"
import type * as Run from "../RunState.ts"
import * as Usage from "../Usage.ts"
import * as Fault from "./fault.ts"
import * as Storable from "./storable.ts"

/** Everything that is stored of runs, for one way to read contents. */
export type Schemas = ReturnType<typeof make>

/** What the events of a record share. */
export interface Scope {
  readonly rootRunId: string
  readonly step: number
  readonly depth: number
  readonly taskId?: string
}

/** The scope of one event that differs from its record's. */
export interface FullScope extends Scope {
  readonly runId: string
  readonly at: number
  readonly revision: number
}

/** A phase event without its scope, and without what is computed from the journal. */
export type EventBody = Events.PhaseEvent extends infer E
  ? E extends Events.RunCompleted
    ? Omit<E, keyof FullScope | "result">
    : E extends Events.PhaseEvent
      ? Omit<E, keyof FullScope>
      : never
  : never

/** A record as it is stored: its events share one scope, or each has its own. */
export interface Record extends Omit<Run.RunRecord, "events" | "delta"> {
  readonly format: number
  readonly scope?: Scope
  readonly scopes?: ReadonlyArray<FullScope>
  readonly events?: ReadonlyArray<EventBody>
  readonly delta?: Run.Delta
}

/** Messages of a conversation: those of the input or of turns, from a first to before a last, or one as it is. */
export type Entry =
  | { readonly input: readonly [start: number, end: number] }
  | { readonly turns: readonly [start: number, end: number] }
  | { readonly message: Message }

/** A part of a state as it is stored. */
export interface Part extends Omit<Run.RunState, "prompt" | "input"> {
  readonly format: number
  /** In the first part only. */
  readonly input?: ReadonlyArray<Message>
  /** How many turns the parts before hold. */
  readonly from: number
  /** How many messages of the conversation of the part before stay, and what follows them. */
  readonly prompt: { readonly base: number; readonly append: ReadonlyArray<Entry> }
}

/** Builds the schemas. */
export const make = (format: number, content: Schema.Codec<Content, unknown>) => {
  const leaf = leaves()
  const { answer, approval, call, callError, completing, dialect, errorInfo, finishReason, kind, modelArgs } = leaf
  const { forkedFrom, outcome, range, scope, source, status, stop, strings, usage } = leaf
  const message = exactly<Message>()({
    role: Schema.Literals(["system", "user", "assistant", "tool"]),
    content: Schema.Array(content),
    name: optional(Schema.String),
    metadata: optional(Storable.JsonObject)
  })
  const messages = Schema.Array(message)

  const spent = exactly<NonNullable<Calls.CallResult["spent"]>>()({
    usage,
    costUsd: Schema.Finite,
    turns: Schema.Finite
  })
  const result = exactly<Calls.CallResult>()({
    toolCallId: Schema.String,
    toolName: Schema.NullOr(Schema.String),
    kind,
    input: Storable.Json,
    output: optional(Schema.Array(content)),
    error: optional(callError),
    skipped: optional(Schema.Boolean),
    message: optional(message),
    metadata: optional(Storable.JsonObject),
    durationMs: optional(Schema.Finite),
    spent: optional(spent)
  })
  const results = Schema.Array(result)
  const change = Schema.Union([
    exactly<Extract<Run.ToolResponseChange, { type: "rewrite" }>>()({ type: Schema.Literal("rewrite"), call }),
    exactly<Extract<Run.ToolResponseChange, { type: "skip" }>>()({ type: Schema.Literal("skip"), result })
  ])
  const prompt = exactly<Run.PromptDelta>()({
    base: Schema.Int,
    append: messages,
    system: optional(Schema.NullOr(Schema.String))
  })

  const event = <T extends EventBody["type"]>(type: T) => {
    type Fields = Omit<Extract<EventBody, { readonly type: T }>, "type">
    return <F extends FieldsOf<Fields>>(fields: F) => Schema.Struct({ type: Schema.Literal(type), ...fields })
  }
  const body = Schema.Union([
    event("run_started")({
      agent: Schema.String,
      parentRunId: absent(Schema.String),
      forkedFrom: optional(forkedFrom),
      messages,
      history: Schema.Int,
      context: Storable.JsonObject
    }),
    event("turn_started")({ turnId: Schema.String, steering: optional(messages) }),
    event("turn_prepared")({
      model: Schema.String,
      dialect,
      prompt,
      tools: strings,
      args: optional(modelArgs)
    }),
    event("model_started")({ attempt: Schema.Int }),
    event("model_restarted")({ attempt: Schema.Int }),
    event("model_completed")({
      message,
      model: Schema.String,
      usage: Schema.NullOr(usage),
      costUsd: optional(Schema.Finite),
      finishReason,
      latencyMs: Schema.Finite,
      outcome,
      calls: Schema.Array(call)
    }),
    event("tool_calls_started")({
      calls: optional(Schema.Array(call)),
      approvals: optional(Schema.Array(approval))
    }),
    event("tool_call_started")({ toolCallId: Schema.String, change: optional(change) }),
    event("tool_call_completed")({ toolCallId: Schema.String, result, spent: optional(spent) }),
    event("tool_calls_completed")({}),
    event("turn_completed")({ turnId: Schema.String }),
    event("paused")({ reason: Schema.String, metadata: Storable.Json }),
    event("run_completed")({
      source,
      reason: optional(Schema.String),
      metadata: optional(Storable.Json)
    }),
    event("run_failed")({ error: errorInfo })
  ])

  const delta = exactly<Run.Delta>()({
    settled: optional(Schema.Boolean),
    context: optional(Storable.JsonObject),
    launched: optional(strings),
    retried: optional(strings),
    resolved: optional(results),
    answers: optional(Schema.Array(answer)),
    asked: optional(Schema.Array(approval)),
    rewind: optional(Schema.Boolean),
    completing: optional(completing),
    deferred: optional(stop),
    resumed: optional(Schema.Boolean)
  })

  const record = exactly<Record>()({
    format: Schema.Literal(format),
    runId: Schema.String,
    revision: Schema.Natural,
    op: Schema.Literals(["phase", "launch", "pause", "resume"]),
    createdAt: Schema.Finite,
    workerId: Schema.String,
    scope: optional(exactly<Scope>()(scope)),
    scopes: optional(
      Schema.Array(
        exactly<FullScope>()({ ...scope, runId: Schema.String, at: Schema.Finite, revision: Schema.Natural })
      )
    ),
    events: optional(Schema.Array(body)),
    delta: optional(delta)
  })

  const turn = exactly<Run.Turn>()({
    turnId: Schema.String,
    turn: Schema.Int,
    attempt: Schema.Int,
    startedAt: Schema.Finite,
    model: optional(Schema.String),
    args: optional(modelArgs),
    before: optional(
      exactly<NonNullable<Run.Turn["before"]>>()({ prompt: messages, system: Schema.NullOr(Schema.String) })
    ),
    dialect,
    tools: strings,
    message: optional(message),
    usage: Schema.NullOr(usage),
    finishReason: optional(finishReason),
    latencyMs: optional(Schema.Finite),
    outcome: optional(outcome),
    pending: Schema.Array(call),
    inFlight: Schema.Array(call),
    completed: results,
    order: strings,
    steering: optional(messages),
    replayed: optional(strings)
  })

  const entry = Schema.Union([
    Schema.Struct({ input: range }),
    Schema.Struct({ turns: range }),
    Schema.Struct({ message })
  ])
  const part = exactly<Part>()({
    format: Schema.Literal(format),
    input: optional(messages),
    from: Schema.Natural,
    turns: Schema.Array(turn),
    prompt: Schema.Struct({ base: Schema.Natural, append: Schema.Array(entry) }),
    runId: Schema.String,
    rootRunId: Schema.String,
    parentRunId: absent(Schema.String),
    depth: Schema.Int,
    taskId: absent(Schema.String),
    forkedFrom: absent(forkedFrom),
    agent: Schema.String,
    revision: Schema.Int,
    status,
    context: Storable.JsonObject,
    history: Schema.Int,
    currentTurn: absent(turn),
    system: Schema.NullOr(Schema.String),
    phaseRevision: Schema.Int,
    settledRevision: Schema.Int,
    approvals: Schema.Array(approval),
    completing: absent(completing),
    deferred: absent(stop),
    usage,
    costUsd: Schema.Finite,
    unreportedTurns: Schema.Finite,
    emptyReplies: Schema.Finite,
    createdAt: Schema.Finite,
    updatedAt: Schema.Finite
  })

  return { record, part, status }
}

// ---------------------------------------------------------------- what holds no contents

type OutcomeOf<T extends Run.Outcome["type"]> = Extract<Run.Outcome, { readonly type: T }>

const leaves = () => {
  const strings = Schema.Array(Schema.String)

  const kind = Schema.Literals(["skill", "protocol", "builtin", "task"])

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

  const callError = exactly<Calls.CallError>()({
    name: Schema.String,
    message: Schema.String,
    recoverable: Schema.Boolean
  })

  const call = exactly<Calls.Call>()({
    toolCallId: Schema.String,
    toolName: Schema.NullOr(Schema.String),
    input: Storable.Json,
    kind,
    review: Schema.Literals(["unreviewed", "accepted"]),
    blockName: optional(Schema.String),
    fault: optional(callError)
  })

  const answer = exactly<Run.ApprovalAnswer>()({
    toolCallId: Schema.String,
    approved: Schema.Boolean,
    reason: optional(Schema.String),
    by: optional(Schema.String),
    input: optional(Storable.Json)
  })

  const approval = exactly<Run.Approval>()({
    toolCallId: Schema.String,
    toolName: Schema.String,
    input: Storable.Json,
    reason: Schema.String,
    answer: optional(answer)
  })

  const completing = exactly<NonNullable<Run.RunState["completing"]>>()({
    source,
    reason: optional(Schema.String),
    metadata: optional(Storable.Json)
  })

  const forkedFrom = exactly<Run.ForkedFrom>()({ runId: Schema.String, revision: Schema.Int })

  const stop = Schema.Union([
    exactly<Extract<Run.Stop, { type: "pause" }>>()({
      type: Schema.Literal("pause"),
      reason: Schema.String,
      metadata: optional(Storable.Json)
    }),
    exactly<Extract<Run.Stop, { type: "finish" }>>()({
      type: Schema.Literal("finish"),
      reason: optional(Schema.String),
      metadata: optional(Storable.Json)
    })
  ])

  const errorInfo = exactly<Run.ErrorInfo>()({
    tag: Schema.String,
    message: Schema.String,
    fields: optional(Storable.JsonObject)
  })

  const status = Schema.Union([
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
      reason: optional(Schema.String),
      metadata: optional(Storable.Json),
      createdAt: Schema.Finite
    }),
    exactly<Extract<Run.Status, { type: "failed" }>>()({
      type: Schema.Literal("failed"),
      phase,
      error: errorInfo,
      createdAt: Schema.Finite
    })
  ])

  const outcome = Schema.Union([
    exactly<OutcomeOf<"workflow">>()({
      type: Schema.Literal("workflow"),
      plan: Plan.Plan,
      note: optional(Schema.String)
    }),
    exactly<OutcomeOf<"tools">>()({ type: Schema.Literal("tools"), note: optional(Schema.String) }),
    exactly<OutcomeOf<"final">>()({ type: Schema.Literal("final"), text: Schema.String }),
    exactly<OutcomeOf<"prose">>()({ type: Schema.Literal("prose"), text: Schema.String }),
    exactly<OutcomeOf<"corrective">>()({
      type: Schema.Literal("corrective"),
      reason: Schema.Literals(["informational", "stall", "cut", "empty", "output", "plan", "loop"]),
      corrective: Schema.String
    })
  ])

  const model = exactly<Model>()({
    id: Schema.String,
    capabilities: Schema.Array(
      Schema.Literals(["text", "vision", "audio_in", "video_in", "document_in", "image_gen", "audio_out"])
    ),
    provider: optional(Schema.String),
    contextWindow: optional(Schema.Finite),
    maxOutputTokens: optional(Schema.Finite),
    price: optional(
      exactly<Price>()({
        inputPerMillion: Schema.Finite,
        outputPerMillion: Schema.Finite,
        cachedPerMillion: optional(Schema.Finite)
      })
    )
  })

  const generation = exactly<Generation>()({
    temperature: optional(Schema.Finite),
    maxTokens: optional(Schema.Finite),
    topP: optional(Schema.Finite),
    stopSequences: optional(strings),
    seed: optional(Schema.Finite),
    thinking: optional(
      exactly<NonNullable<Generation["thinking"]>>()({
        budget: optional(Schema.Finite),
        effort: optional(Schema.String)
      })
    ),
    extra: optional(Storable.JsonObject)
  })

  const modelArgs = exactly<Run.ModelArgs>()({
    model: optional(model),
    generation: optional(generation),
    cacheBreakpoints: optional(Schema.Array(Schema.Int))
  })

  // Whatever was counted is read back; what may be counted is decided where usage is made.
  const usage: Schema.Codec<Usage.Usage, unknown> = Schema.Unknown.pipe(
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

  const scope = { rootRunId: Schema.String, step: Schema.Finite, depth: Schema.Finite, taskId: optional(Schema.String) }

  const range = Schema.Tuple([Schema.Natural, Schema.Natural])

  return {
    usage,
    range,
    scope,
    strings,
    kind,
    dialect,
    finishReason,
    source,
    callError,
    call,
    answer,
    approval,
    completing,
    errorInfo,
    status,
    forkedFrom,
    stop,
    outcome,
    modelArgs
  }
}

// ---------------------------------------------------------------- helpers

type FieldsOf<T> = { readonly [K in keyof T]-?: Schema.Constraint }

const exactly =
  <T>() =>
  <F extends FieldsOf<T>>(fields: F) =>
    Schema.Struct(fields)

const optional = Schema.optionalKey

/** A field that is there but undefined is not written. */
const absent = <S extends Schema.Constraint>(schema: S) =>
  Schema.withDecodingDefaultKey<Schema.UndefinedOr<S>>(Effect.succeed(undefined))(Schema.UndefinedOr(schema))

/** Read by hand: every turn has one, and renaming four fields by schema takes longer than all else about it. */
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
    reasoningTokens: count("reasoning_tokens")
  }
  return Number.isNaN(Usage.total(usage) + usage.cachedTokens + usage.reasoningTokens) ? undefined : usage
}
