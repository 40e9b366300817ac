/**
 * Explains why a run failed or is waiting: the cause, the affected part of the run, and the next step. Pure, so that
 * the page and the command show the same text.
 *
 * @since 0.1.0
 */

import type { CallError } from "../Call.ts"
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
  | "rate limit"
  | "model unknown"
  | "context too long"
  | "content filter"
  | "cut reply"
  | "malformed call"
  | "skill failed"
  | "skill timed out"
  | "MCP server down"
  | "budget exhausted"
  | "lease lost"
  | "poisoned"
  | "damaged journal"
  | "other failure"

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
    return standing.type === "no_answer" ? ofError({ ...standing.error, message: standing.reason }) : undefined
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
export const ofError = ({ fields = {}, message, tag }: ErrorInfo, turn?: Turn): FailureCause => {
  const attempts = typeof fields["attempts"] === "number" ? fields["attempts"] : turn?.attempt
  const found = tag === "ProviderError" ? providers[String(fields["reason"])] : errors[tag]
  const [name, part, fix] = found ?? other(tag)
  const variable = fields["variable"]
  return {
    name,
    cause: message,
    part,
    ...(attempts === undefined ? {} : { attempts }),
    fix: typeof variable === "string" ? `Set ${variable}, then resume the run.` : fix
  }
}

/**
 * Explains a call without a result. The run itself may continue: the model reads the error.
 *
 * @category constructors
 * @since 0.1.0
 */
export const ofCall = (call: string, { message, name: error }: CallError): FailureCause => {
  const [name, fix] = callErrors[error] ?? callErrors["failed"]
  return { name, cause: message, part: `call ${call}`, fix }
}

/** Explains a reply that the model has to correct. */
const ofReply = ({ attempt, finishReason, outcome, turn }: Turn): FailureCause | undefined => {
  if (outcome?.type !== "corrective") return undefined
  const isCut = outcome.reason === "cut" || finishReason === "length"
  return {
    name: isCut ? "cut reply" : "malformed call",
    cause: outcome.corrective,
    part: `reply of turn ${turn}`,
    attempts: attempt,
    fix: isCut
      ? "Raise the output tokens of the agent, or ask for a shorter answer."
      : "The model was asked to correct its reply. If it repeats, give an example in the instructions."
  }
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
  fix: "Restore the store from a backup, or fork the run at the last revision that can be read."
})

type Entry = readonly [name: FailureName, part: string, fix: string]

const key: Entry = ["key missing", "the key of the provider", "Set a valid key of the provider, then resume the run."]
const rate: Entry = ["rate limit", "calls per time", "Wait, lower the concurrency or raise the limit; then resume."]
const unknownModel: Entry = ["model unknown", "the model of the agent", "Correct the name of the model, then resume."]
const tooLong: Entry = [
  "context too long",
  "the messages of the prompt",
  "Shorten the conversation, add a compaction to the prompt pipeline, or use a model with a larger window."
]
const filtered: Entry = [
  "content filter",
  "the messages of the prompt",
  "Change the input or the instructions; a repeat is refused as well."
]
const cut: Entry = [
  "cut reply",
  "the reply of the model",
  "Resume to ask again; raise the output tokens if it repeats."
]
const server: Entry = [
  "MCP server down",
  "an MCP server",
  "Check the server with 'kernai mcp doctor', then resume the run."
]
const damaged: Entry = ["damaged journal", "the store of the run", ofDamage("").fix]
const budget: Entry = ["budget exhausted", "the budget of the run", "Resume the run with a larger budget."]

const other = (tag: string): Entry => ["other failure", tag, "Read the cause. Resume the run once it is removed."]

const providers: { readonly [reason: string]: Entry | undefined } = {
  not_configured: key,
  authentication: key,
  permission: key,
  rate_limited: rate,
  quota_exhausted: rate,
  overloaded: rate,
  not_found: unknownModel,
  context_length: tooLong,
  content_filter: filtered,
  refusal: filtered,
  incomplete: cut,
  disconnected: cut
}

const errors: { readonly [tag: string]: Entry | undefined } = {
  ProviderUnavailable: key,
  CredentialMissing: key,
  UnsupportedProvider: unknownModel,
  InvalidModel: unknownModel,
  ContextWindowExceeded: tooLong,
  McpError: server,
  BudgetExhaustedError: budget,
  DeadlineExceeded: budget,
  CutReplies: cut,
  MaxStepsReached: ["budget exhausted", "the turn limit of the agent", "Resume the run with a higher maxSteps."],
  AgentCrashError: [
    "lease lost",
    "the worker of the run",
    "Nothing is lost: another worker continues it, or resume the run."
  ],
  RunPoisoned: [
    "poisoned",
    "the process of its worker",
    "Remove what ended the process, then 'kernai runs retry', or cancel the run."
  ],
  ConcurrentAppendError: [
    "lease lost",
    "the worker of the run",
    "Another worker continued the run. Nothing is to be done."
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
  InvalidArguments: ["malformed call", "The model reads why. If it repeats, describe the fields of the input schema."],
  ToolNotFound: ["malformed call", "Offer the skill to the agent, or remove its name from the instructions."]
}
