/**
 * Others a run has to do with: servers that cannot be used, workers that lost a run, agents nobody can write to.
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
    "invalid_request"
  ]),
  detail: Schema.String
}) {
  override get message() {
    return this.detail
  }
}

/** The worker died or lost its lease; the run goes on elsewhere from its last commit. */
export class AgentCrashError extends Schema.TaggedError<AgentCrashError>()("AgentCrashError", {
  runId: Schema.String,
  agentId: Schema.String
}) {
  override get message() {
    return `the worker of run '${this.runId}' lost it`
  }
}

/** A message to an agent nobody registered (CP-16). */
export class AgentNotFoundError extends Schema.TaggedError<AgentNotFoundError>()("AgentNotFoundError", {
  agentId: Schema.String
}) {
  override get message() {
    return `no agent '${this.agentId}'`
  }
}

/** An agent's message handler failed, died or was interrupted (CP-16). */
export class HandlerError extends Schema.TaggedError<HandlerError>()("HandlerError", {
  agentId: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    return `the handler of '${this.agentId}' failed: ${this.detail}`
  }
}

/** An agent's address is taken. It is free again when the scope that registered it closes. */
export class AgentIdConflict extends Schema.TaggedError<AgentIdConflict>()("AgentIdConflict", {
  agentId: Schema.String
}) {
  override get message() {
    return `agent '${this.agentId}' is already registered`
  }
}
