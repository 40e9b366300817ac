/**
 * The Schemas of requests and responses of the HTTP door.
 *
 * @since 0.1.0
 */

import * as Schema from "effect/Schema"
import * as Content from "../Content.ts"
import * as Message from "../Message.ts"
import * as RunEvent from "../RunEvent.ts"
import { statuses, statusWords } from "../RunStore.ts"
import { Asking } from "../Skill.ts"
import * as Usage from "../Usage.ts"
import { isRecord } from "../kit/json.ts"

/**
 * A name of a run chosen by a client: 1 to 98 characters.
 *
 * @category schemas
 * @since 0.1.0
 */
export const RunName = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9._:~%@-]{1,98}$/))

/**
 * Starts a run.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Start = Schema.Struct({
  /** Default: the only agent of the server. */
  agent: Schema.optionalKey(Schema.String),
  /** A text, or contents: text, and media by URL, by bytes or by the id of an uploaded one. */
  input: Schema.Union([Schema.String, Schema.Array(Content.Content)]),
  /**
   * The id of the run. Unless the caller is an operator, the server prefixes it with the caller's id. Default: random.
   */
  runId: Schema.optionalKey(RunName),
  /** Messages before the input, of the user, the assistant and tools. */
  history: Schema.optionalKey(Schema.Array(Message.Message)),
  /** The context of the run, for servers that accept one. */
  context: Schema.optionalKey(Schema.JsonObject)
})
/**
 * Starts a run.
 *
 * @category models
 * @since 0.1.0
 */
export type Start = typeof Start.Type

/**
 * The id of a started run.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Started = Schema.Struct({ runId: Schema.String })

const ErrorInfo = Schema.Struct({ tag: Schema.String, message: Schema.String })

/**
 * The status of a run, as in lists and heads.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Status = Schema.Struct({
  type: Schema.Literals(statuses),
  reason: Schema.optionalKey(Schema.String),
  error: Schema.optionalKey(ErrorInfo)
})

/**
 * The summary of a run. Instants are milliseconds since the epoch.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Head = Schema.Struct({
  runId: Schema.String,
  rootRunId: Schema.String,
  parentRunId: Schema.optionalKey(Schema.String),
  agent: Schema.String,
  /** The version of the agent with which the run was started. */
  version: Schema.optionalKey(Schema.String),
  /** The tenant and the labels of the caller who started the run. */
  tenant: Schema.optionalKey(Schema.String),
  labels: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
  revision: Schema.Int,
  status: Status,
  turns: Schema.Int,
  createdAt: Schema.Finite,
  updatedAt: Schema.Finite
})
/**
 * The summary of a run.
 *
 * @category models
 * @since 0.1.0
 */
export type Head = typeof Head.Type

/**
 * Selects runs of the caller, the newest first.
 *
 * @category schemas
 * @since 0.1.0
 */
export const ListQuery = Schema.Struct({
  agent: Schema.optionalKey(Schema.String),
  /** `poisoned` are the failed runs that workers gave up. */
  status: Schema.optionalKey(Schema.Literals(statusWords)),
  /** Only runs of this tenant. */
  tenant: Schema.optionalKey(Schema.String),
  /** Only runs with all of these labels, each as `name=text`. */
  label: Schema.optionalKey(Schema.Union([Schema.String, Schema.Array(Schema.String)])),
  /** Only the runs of one tree. Default: runs without a parent. */
  rootRunId: Schema.optionalKey(Schema.String),
  /** At most 100. Default: 20. */
  limit: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100 }))),
  /** `next` of the previous page. */
  after: Schema.optionalKey(Schema.String)
})
/**
 * Selects runs of the caller.
 *
 * @category models
 * @since 0.1.0
 */
export type ListQuery = typeof ListQuery.Type

/**
 * A page of runs. `next` is absent on the last one.
 *
 * @category schemas
 * @since 0.1.0
 */
export const RunList = Schema.Struct({ runs: Schema.Array(Head), next: Schema.optionalKey(Schema.String) })
/**
 * A page of runs.
 *
 * @category models
 * @since 0.1.0
 */
export type RunList = typeof RunList.Type

/**
 * A call that waits for a person.
 *
 * @category schemas
 * @since 0.1.0
 */
export const OpenQuestion = Schema.Struct({
  callId: Schema.String,
  name: Schema.String,
  input: Schema.Json,
  reason: Schema.String,
  /** The question of the call while it runs. Absent if a policy asks whether the call may run. */
  asking: Schema.optionalKey(Asking),
  /** When the question is declined unless it was answered, in milliseconds since the epoch. */
  answerBy: Schema.optionalKey(Schema.Finite),
  /** The callers who may answer, by the rules of the policies. Absent: everyone who may see the run. */
  answerers: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({
        callers: Schema.optionalKey(Schema.Array(Schema.String)),
        roles: Schema.optionalKey(Schema.Array(Schema.String)),
        owner: Schema.optionalKey(Schema.Boolean)
      })
    )
  ),
  runId: Schema.String,
  agents: Schema.Array(Schema.String)
})

/** A decision about a waiting call. */
const Decision = Schema.Struct({
  callId: Schema.String,
  approved: Schema.Boolean,
  reason: Schema.optionalKey(Schema.String),
  input: Schema.optionalKey(Schema.Json),
  /** The values of the form that the call asks for. */
  values: Schema.optionalKey(Schema.Record(Schema.String, Schema.Json)),
  /** True if the question was dismissed without a decision; `approved` is then false. */
  dismissed: Schema.optionalKey(Schema.Boolean)
})

/** The result of an external call, as its `asking.output` describes it, or its failure. */
const External = [
  Schema.Struct({ callId: Schema.String, output: Schema.Json }),
  Schema.Struct({ callId: Schema.String, error: Schema.String })
] as const

/**
 * Decisions about waiting calls, and results of external calls. With `revision`, they are rejected if the run is at
 * another revision.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Answers = Schema.Struct({
  answers: Schema.Array(Schema.Union([Decision, ...External])),
  revision: Schema.optionalKey(Schema.Int)
})
/**
 * Decisions about waiting calls, and results of external calls.
 *
 * @category models
 * @since 0.1.0
 */
export type Answers = typeof Answers.Type

/**
 * Cancels a run.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Cancel = Schema.Struct({ reason: Schema.optionalKey(Schema.String) })

/**
 * What a cancellation ended. Empty for a run that was cancelled before.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Cancelled = Schema.Struct({
  /** The runs that had not ended, the root first. */
  runs: Schema.Array(Schema.String),
  /** The runs whose model was being asked. */
  requests: Schema.Array(Schema.String),
  /** The calls that were in flight. A `write` call may have acted. */
  calls: Schema.Array(
    Schema.Struct({
      runId: Schema.String,
      callId: Schema.String,
      name: Schema.NullOr(Schema.String),
      effects: Schema.optionalKey(Schema.Literals(["read", "idempotent", "write"]))
    })
  ),
  /** The workers that had the root run. Absent unless the caller is an operator. */
  workers: Schema.optionalKey(Schema.Array(Schema.String))
})
/**
 * What a cancellation ended.
 *
 * @category models
 * @since 0.1.0
 */
export type Cancelled = typeof Cancelled.Type

/**
 * Offers a run to workers again. With `revision`, it is rejected if the run is at another revision.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Retry = Schema.Struct({ revision: Schema.optionalKey(Schema.Int) })

/**
 * The result of a completed run. `output` is the answer as JSON for an agent with an output schema, otherwise its text.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Result = Schema.Struct({
  runId: Schema.String,
  status: Schema.Literal("completed"),
  agent: Schema.String,
  output: Schema.Json,
  text: Schema.String,
  usage: Usage.Usage,
  /** US dollars of the calls whose price is known. Absent if none is. */
  costUsd: Schema.optionalKey(Schema.Finite),
  turns: Schema.Int,
  finishReason: Schema.String,
  messages: Schema.Array(Message.Message),
  calls: Schema.Array(
    Schema.Struct({
      callId: Schema.String,
      name: Schema.NullOr(Schema.String),
      input: Schema.Json,
      isError: Schema.Boolean,
      error: Schema.optionalKey(Schema.String),
      turn: Schema.Int
    })
  )
})
/**
 * The result of a completed run.
 *
 * @category models
 * @since 0.1.0
 */
export type Result = typeof Result.Type

/**
 * A stored medium, without its bytes.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Medium = Schema.Struct({ id: Schema.String, kind: Schema.String, mimeType: Schema.String })
/**
 * A stored medium, without its bytes.
 *
 * @category models
 * @since 0.1.0
 */
export type Medium = typeof Medium.Type

/**
 * An agent that the server runs.
 *
 * @category schemas
 * @since 0.1.0
 */
export const AgentInfo = Schema.Struct({ name: Schema.String, description: Schema.optionalKey(Schema.String) })
/**
 * An agent that the server runs.
 *
 * @category models
 * @since 0.1.0
 */
export type AgentInfo = typeof AgentInfo.Type

/**
 * The state of the server.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Health = Schema.Struct({ status: Schema.Literal("ok") })

/**
 * An event of a run as JSON (see `RunEvent.toJson`). Bytes become their count.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Event: Schema.Codec<RunEvent.RunEvent, unknown> = Schema.declare(
  (value: unknown): value is RunEvent.RunEvent =>
    isRecord(value) && isScope(value) && typeof value["type"] === "string",
  { identifier: "RunEvent", expected: "an event of a run" }
)

const isScope = ({ at, depth, rootRunId, runId, step }: Record<string, unknown>): boolean =>
  typeof runId === "string" &&
  typeof rootRunId === "string" &&
  typeof step === "number" &&
  typeof depth === "number" &&
  typeof at === "number"
