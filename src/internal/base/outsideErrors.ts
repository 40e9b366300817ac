/**
 * Errors of MCP servers, workers and addressed agents.
 */

import * as Schema from "effect/Schema"

/** An MCP server cannot be reached, understood or used. */
export class McpError extends Schema.TaggedError<McpError>()("McpError", {
  server: Schema.String,
  reason: Schema.Literals([
    "config",
    "connect",
    "version",
    "needs_sign_in",
    "timeout",
    "disconnected",
    "outcome_unknown",
    "protocol",
    "remote",
    "limit_exceeded",
    "not_found",
    "not_allowed",
    "input_required",
    "invalid_request"
  ]),
  detail: Schema.String
}) {
  override get message() {
    return this.detail
  }
}

/** The worker of a run died or lost its lease. The run can be resumed from its last commit. */
export class AgentCrashError extends Schema.TaggedError<AgentCrashError>()("AgentCrashError", {
  runId: Schema.String,
  agentId: Schema.String
}) {
  override get message() {
    return `the worker of run '${this.runId}' crashed or lost its lease`
  }
}

/** No agent is registered under this id. */
export class AgentNotFoundError extends Schema.TaggedError<AgentNotFoundError>()("AgentNotFoundError", {
  agentId: Schema.String
}) {
  override get message() {
    return `no agent '${this.agentId}'`
  }
}

/** The message handler of an agent failed, died or was interrupted. */
export class HandlerError extends Schema.TaggedError<HandlerError>()("HandlerError", {
  agentId: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    return `the handler of '${this.agentId}' failed: ${this.detail}`
  }
}

/** The id of an agent is taken. It is free again when the scope that registered it closes. */
export class AgentIdConflict extends Schema.TaggedError<AgentIdConflict>()("AgentIdConflict", {
  agentId: Schema.String
}) {
  override get message() {
    return `agent '${this.agentId}' is already registered`
  }
}
