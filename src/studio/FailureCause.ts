/**
 * Explains why a run failed or is waiting: the cause, the affected part of the run, and the next step. Pure, so that
 * the page and the command show the same text.
 *
 * @since 0.1.0
 */

import type { CallError } from "../Call.ts"
import { type Json, jsonObject } from "../kit/json.ts"
import type { ErrorInfo, RunState, Turn } from "../RunModel.ts"
import { statusOf } from "../store-kit/StoreRules.ts"

/**
 * The name of a failure.
 *
 * @category models
 * @since 0.1.0
 */
export type FailureName =
  | "key missing"
  | "key refused"
  | "no permission"
  | "rate limit"
  | "quota used up"
  | "vendor unavailable"
  | "model unknown"
  | "context too long"
  | "content filter"
  | "media refused"
  | "request refused"
  | "cut reply"
  | "empty replies"
  | "loop"
  | "unusable answers"
  | "step limit"
  | "malformed call"
  | "wrong arguments"
  | "skill failed"
  | "skill timed out"
  | "MCP server down"
  | "budget exhausted"
  | "deadline passed"
  | "lease lost"
  | "poisoned"
  | "damaged journal"
  | "other failure"

/**
 * What continues a run after a failure: `retry` offers it to workers again as it is, `fork` continues a changed copy from
 * before the failure, and `rerun` starts a copy from its question.
 *
 * @category models
 * @since 0.1.0
 */
export type FailureAction = "retry" | "fork" | "rerun" | "none"

/**
 * The reason why a run does not continue.
 *
 * @category models
 * @since 0.1.0
 */
export interface FailureCause {
  readonly name: FailureName
  /** The message of the error. */
  readonly cause: string
  /** The affected part of the request or of the run. */
  readonly part: string
  /** Number of model calls for the turn, if known. */
  readonly attempts?: number
  readonly fix: string
  readonly action: FailureAction
  /** The vendor of the model, and its own description of the failure, if it sent one. */
  readonly vendor?: { readonly name: string; readonly message: string }
}

/**
 * Explains a run: its failure, or the failed calls of its last turn while it has not completed.
 *
 * @category constructors
 * @since 0.1.0
 */
export const causeOf = (state: Pick<RunState, "status" | "turns" | "currentTurn">): FailureCause | undefined => {
  const { status } = state
  const turn = state.currentTurn ?? state.turns.at(-1)
  if (status.type === "failed") return ofError(status.error, turn)
  if (status.type === "completed") {
    const standing = statusOf(status)
    return standing.type === "no_answer" ? ofError({ ...standing.error, message: standing.reason }, turn) : undefined
  }
  const failed = turn?.completed.findLast(({ error }) => error !== undefined)
  if (failed?.error !== undefined) return ofCall(failed.name ?? failed.kind, failed.error)
  return turn?.outcome?.type === "corrective" ? ofReply(turn) : undefined
}

/**
 * Explains the error of a run.
 *
 * @category constructors
 * @since 0.1.0
 */
export const ofError = (error: ErrorInfo, turn?: Turn): FailureCause => {
  const { fields = {}, message, tag } = error
  const attempts = typeof fields["attempts"] === "number" ? fields["attempts"] : turn?.attempt
  const [name, part, fix, action] = entryOf(error, turn)
  const variable = fields["variable"]
  const vendor = vendorIn(fields)
  return {
    name,
    cause: message,
    part,
    ...(attempts === undefined ? {} : { attempts }),
    fix: typeof variable === "string" ? `Set ${variable}, then retry.` : fix,
    action: tag === "ProviderError" && fields["shouldRetry"] === false && action === "retry" ? "fork" : action,
    ...(vendor === undefined ? {} : { vendor })
  }
}

const entryOf = ({ fields = {}, tag }: ErrorInfo, turn: Turn | undefined): Entry => {
  if (tag === "ProviderError") {
    const reason = String(fields["reason"])
    const words = vendorIn(fields)?.message ?? String(fields["detail"] ?? "")
    if (reason === "invalid_request" && /\b(?:image|media|audio|video|document|pdf)s?\b/i.test(words)) return media
    return providers[reason] ?? other(tag)
  }
  // The turns were used up by answers that did not fit the schema.
  const outcome = turn?.outcome
  if (tag === "MaxStepsReached" && outcome?.type === "corrective" && outcome.reason === "output")
    return unusableToTheEnd
  return errors[tag] ?? other(tag)
}

const vendorIn = (fields: NonNullable<ErrorInfo["fields"]>): FailureCause["vendor"] => {
  const words = fields["vendor"]
  const message = typeof words === "object" && words !== null && "message" in words ? words["message"] : undefined
  return typeof message === "string" && message !== "" ? { name: String(fields["provider"]), message } : undefined
}

/**
 * Explains a call without a result. The run itself may continue: the model reads the error.
 *
 * @category constructors
 * @since 0.1.0
 */
export const ofCall = (call: string, { message, name: error }: CallError): FailureCause => {
  const [name, fix] = callErrors[error] ?? callErrors["failed"]
  return { name, cause: message, part: `call ${call}`, fix, action: "fork" }
}

/** Explains a reply that the model has to correct. */
const ofReply = ({ attempt, finishReason, outcome, turn }: Turn): FailureCause | undefined => {
  if (outcome?.type !== "corrective") return undefined
  const [name, fix] = finishReason === "length" ? corrections.cut : (corrections[outcome.reason] ?? corrections.plan)
  return { name, cause: outcome.corrective, part: `reply of turn ${turn}`, attempts: attempt, fix, action: "none" }
}

const malformed = [
  "malformed call",
  "The model was asked to correct its reply. If it repeats, give an example in the instructions."
] as const

/** The names and fixes of replies that the model has to correct, by their reasons. */
const corrections: { readonly [reason: string]: readonly [FailureName, string] | undefined } & Record<
  "cut" | "plan",
  readonly [FailureName, string]
> = {
  cut: ["cut reply", "Raise the output tokens of the agent, or ask for a shorter answer."],
  empty: ["empty replies", "The model was asked again. If it repeats, use another model or a shorter prompt."],
  output: ["unusable answers", "The model reads what does not fit. If it repeats, simplify the schema of the answer."],
  loop: ["loop", "The model was told that it repeats itself. If it goes on, change the instructions or the skill."],
  plan: malformed
}

/**
 * Explains a journal that cannot be read beyond some record.
 *
 * @category constructors
 * @since 0.1.0
 */
export const ofDamage = (message: string): FailureCause => ({
  name: "damaged journal",
  cause: message,
  part: "the stored records of the run",
  fix: "Restore the store from a backup, or fork the run at the last revision that can be read.",
  action: "fork"
})

/**
 * Returns in words what a run waits for: `approval of send_mail`. Other reasons, such as those of hooks, stay as they
 * are.
 *
 * @category reading
 * @since 0.1.0
 */
export const waitReason = ({ metadata, reason }: { readonly reason: string; readonly metadata?: Json }): string => {
  if (reason !== "approval_required" && reason !== "approval_not_run") return reason
  const { questions } = jsonObject(metadata)
  const names = (Array.isArray(questions) ? questions : [])
    .map((question) => jsonObject(question)["name"])
    .filter((name) => typeof name === "string")
  const approval = names.length === 0 ? "an approval" : `approval of ${[...new Set(names)].join(", ")}`
  return reason === "approval_required" ? approval : `${approval}, since an approved call could not run`
}

type Entry = readonly [name: FailureName, part: string, fix: string, action: FailureAction]

const key: Entry = ["key missing", "the key of the provider", "Set a key of the provider, then retry.", "retry"]
const wrongKey: Entry = [
  "key refused",
  "the key of the provider",
  "The key is set, but the vendor does not accept it: replace it, then retry.",
  "retry"
]
const permission: Entry = [
  "no permission",
  "the account of the key",
  "Give the account access to the model, or use another key or model; then retry.",
  "retry"
]
const rate: Entry = [
  "rate limit",
  "calls per time",
  "Wait, lower the concurrency or raise the limit; then retry.",
  "retry"
]
const quota: Entry = ["quota used up", "the account of the key", "Add credit or raise the quota, then retry.", "retry"]
const unavailable: Entry = [
  "vendor unavailable",
  "the connection to the provider",
  "Nothing is wrong with the run: retry when the vendor answers again.",
  "retry"
]
const unknownModel: Entry = [
  "model unknown",
  "the model of the agent",
  "Correct the name of the model, then retry.",
  "retry"
]
const tooLong: Entry = [
  "context too long",
  "the messages of the prompt",
  "Shorten the conversation, add a compaction to the prompt pipeline, or use a model with a larger window.",
  "retry"
]
const filtered: Entry = [
  "content filter",
  "the messages of the prompt",
  "Change the input or the instructions; a repeat is refused as well.",
  "fork"
]
const media: Entry = [
  "media refused",
  "a medium of the prompt",
  "Remove the medium, send it in another type or size, or use a model that reads it.",
  "fork"
]
const refused: Entry = [
  "request refused",
  "the request to the provider",
  "Change what the vendor names; a repeat is refused as well.",
  "fork"
]
const cut: Entry = ["cut reply", "the reply of the model", "Retry; raise the output tokens if it repeats.", "retry"]
const empty: Entry = [
  "empty replies",
  "the replies of the model",
  "Retry; if it repeats, use another model or a shorter prompt.",
  "retry"
]
const loop: Entry = [
  "loop",
  "the last turns",
  "Change the instructions or the result that the model repeats itself over, in a fork.",
  "fork"
]
const unusable: Entry = [
  "unusable answers",
  "the answers of the model",
  "No answer fits the schema: simplify it or give an example, then retry.",
  "retry"
]
const unusableToTheEnd: Entry = [
  "unusable answers",
  "the answers of the model",
  "No answer fits the schema: simplify it or give an example, then run it again.",
  "rerun"
]
const steps: Entry = [
  "step limit",
  "the turn limit of the agent",
  "Resume the run with a higher maxSteps, or run it again.",
  "rerun"
]
const server: Entry = [
  "MCP server down",
  "an MCP server",
  "Check the server with 'kernai mcp doctor', then retry.",
  "retry"
]
const damaged: Entry = ["damaged journal", "the store of the run", ofDamage("").fix, "fork"]
const budget: Entry = ["budget exhausted", "the budget of the run", "Retry with a larger budget.", "retry"]
const deadline: Entry = ["deadline passed", "the deadline of the run", "Retry with a later deadline.", "retry"]

const other = (tag: string): Entry => ["other failure", tag, "Read the cause. Retry once it is removed.", "retry"]

const providers: { readonly [reason: string]: Entry | undefined } = {
  not_configured: key,
  authentication: wrongKey,
  permission,
  forbidden: permission,
  rate_limited: rate,
  quota_exhausted: quota,
  overloaded: unavailable,
  server_error: unavailable,
  disconnected: unavailable,
  timeout: unavailable,
  not_found: unknownModel,
  context_length: tooLong,
  content_filter: filtered,
  refusal: filtered,
  invalid_request: refused,
  limit_exceeded: refused,
  incomplete: cut
}

const errors: { readonly [tag: string]: Entry | undefined } = {
  ProviderUnavailable: key,
  CredentialMissing: key,
  UnsupportedProvider: unknownModel,
  InvalidModel: unknownModel,
  ContextWindowExceeded: tooLong,
  McpError: server,
  BudgetExhaustedError: budget,
  DeadlineExceeded: deadline,
  CutReplies: cut,
  EmptyReplies: empty,
  LoopDetected: loop,
  OutputInvalid: unusable,
  MaxStepsReached: steps,
  AgentCrashError: [
    "lease lost",
    "the worker of the run",
    "Nothing is lost: another worker continues it, or retry.",
    "retry"
  ],
  RunPoisoned: [
    "poisoned",
    "the process of its worker",
    "Remove what ended the process, then retry, or cancel the run.",
    "retry"
  ],
  ConcurrentAppendError: [
    "lease lost",
    "the worker of the run",
    "Another worker continued the run. Nothing is to be done.",
    "none"
  ],
  StoreError: damaged
}

const failedCall = [
  "skill failed",
  "Read the error: the model received it too. Fix the skill or its input, then fork before the call."
] as const

const callErrors: { readonly [name: string]: readonly [FailureName, string] | undefined } & {
  readonly failed: readonly [FailureName, string]
} = {
  failed: failedCall,
  Timeout: ["skill timed out", "Raise the skill's timeout, or make it report progress and finish earlier."],
  McpError: ["MCP server down", "Check the server with 'kernai mcp doctor', then fork before the call."],
  InvalidArguments: ["wrong arguments", "The model reads why. If it repeats, describe the fields of the input schema."],
  ToolNotFound: ["malformed call", "Offer the skill to the agent, or remove its name from the instructions."]
}
