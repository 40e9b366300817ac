/**
 * One thing a model asked for, and what came of it.
 *
 * A call is made when a reply is read and keeps its id over crashes, resumes
 * and replays. Everything here is JSON-safe: calls and results are what the
 * journal holds.
 *
 * @since 0.1.0
 */
import type { Json } from "effect/Schema"
import type { Content } from "./Content.ts"
import type { Message } from "./Message.ts"

/**
 * What answers a call: a local skill, an external protocol, a word of the kernel, or a child run.
 *
 * @category models
 * @since 0.1.0
 */
export type CallKind = "skill" | "protocol" | "builtin" | "task"

/**
 * A call as the model (or a rewriting hook) wrote it.
 *
 * `input` is an object of parameters for a skill, the content text of the block
 * for a protocol or builtin, and the task for a task. In the block dialect the
 * id is `<turnId>.<index>` (DR-2).
 *
 * @category models
 * @since 0.1.0
 */
export interface Call {
  readonly toolCallId: string
  /** As written, stripped; null when a command block has no name (BP-62). */
  readonly toolName: string | null
  readonly input: Json
  readonly kind: CallKind
  readonly review: "unreviewed" | "accepted"
  /** Why the call cannot run, told to the model instead of running it. */
  readonly fault?: CallError
}

/**
 * Why a call gave no result. The text is for the model: type and sentence, never a stack.
 *
 * @category models
 * @since 0.1.0
 */
export interface CallError {
  readonly name: string
  readonly message: string
  readonly recoverable: boolean
}

/**
 * What came of a call: exactly one of `output` and `error` (DR-2).
 *
 * @category models
 * @since 0.1.0
 */
export interface CallResult {
  readonly toolCallId: string
  readonly toolName: string | null
  readonly kind: CallKind
  readonly input: Json
  readonly output?: ReadonlyArray<Content>
  readonly error?: CallError
  /** Answered by a hook or a policy without running (DR-11, DR-22). */
  readonly skipped?: boolean
  /** A whole message of a protocol's own, taken as it is (BP-77). */
  readonly message?: Message
  /** Facts for the host; never shown to the model (BP-75). */
  readonly metadata?: { readonly [key: string]: Json }
  readonly durationMs?: number
}

/**
 * Makes the failed result of a call.
 *
 * @category constructors
 * @since 0.1.0
 */
export const failed = (call: Call, error: CallError, more?: { readonly skipped?: boolean; readonly durationMs?: number }): CallResult => ({
  toolCallId: call.toolCallId,
  toolName: call.toolName,
  kind: call.kind,
  input: call.input,
  error,
  ...more
})

/**
 * Makes the successful result of a call.
 *
 * @category constructors
 * @since 0.1.0
 */
export const succeeded = (
  call: Call,
  output: ReadonlyArray<Content>,
  more?: Pick<CallResult, "message" | "metadata" | "durationMs">
): CallResult => ({
  toolCallId: call.toolCallId,
  toolName: call.toolName,
  kind: call.kind,
  input: call.input,
  output,
  ...more
})

/**
 * Makes the error a model is told.
 *
 * @category constructors
 * @since 0.1.0
 */
export const error = (name: string, message: string, recoverable = true): CallError => ({ name, message, recoverable })
