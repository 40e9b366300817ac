/**
 * The error of A2A clients.
 *
 * @since 0.1.0
 */

import * as Data from "effect/Data"

/**
 * Fails when an agent of another service cannot be reached, understood or used, or did not complete its task. The
 * detail is a sentence without secrets, which a model may read.
 *
 * - `config`: its settings are invalid. `version`: it supports no version or transport that this client supports.
 * - `connect`: no request reached it. `disconnected`: the connection broke. `timeout`: it did not respond in time.
 * - `outcome_unknown`: the connection broke before the agent confirmed a message, which it may have received.
 * - `needs_sign_in`: it requires credentials, or other ones. `not_found`: it has no such task. `not_supported`: it does
 *   not support this, or not in this state of the task.
 * - `protocol`: its response is malformed. `limit_exceeded`: its response is larger than a limit.
 * - `not_completed`: the task failed, was refused or was cancelled. `remote`: it responded with another error.
 * - `not_allowed`, `invalid_request`: a model may not send this request, or wrote it wrong.
 *
 * @category errors
 * @since 0.1.0
 */
export class A2aError extends Data.TaggedError("A2aError")<{
  /** The local name of the agent. */
  readonly agent: string
  readonly reason:
    | "config"
    | "version"
    | "connect"
    | "disconnected"
    | "timeout"
    | "outcome_unknown"
    | "needs_sign_in"
    | "not_found"
    | "not_supported"
    | "protocol"
    | "limit_exceeded"
    | "not_completed"
    | "remote"
    | "not_allowed"
    | "invalid_request"
  readonly detail: string
}> {
  override get message() {
    return this.detail
  }
}
