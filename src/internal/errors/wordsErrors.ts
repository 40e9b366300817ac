/**
 * Errors of contents, addresses, usage and agents that are malformed or exceed a limit.
 *
 * `path` points at the innermost fault.
 */

import * as Schema from "effect/Schema"

/**
 * A content does not have the shape of its type.
 *
 * `path` is a JSON pointer from the content to the innermost fault.
 */
export class BlockValidationError extends Schema.TaggedError<BlockValidationError>()("BlockValidationError", {
  path: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `invalid content at '${this.path}': ${this.reason}`
  }
}

/** The content type is built in, or registered with another schema. */
export class BlockTypeConflict extends Schema.TaggedError<BlockTypeConflict>()("BlockTypeConflict", {
  type: Schema.String
}) {
  override get message() {
    return `content type '${this.type}' is already taken`
  }
}

/** The text is not an address. */
export class InvalidAddress extends Schema.TaggedError<InvalidAddress>()("InvalidAddress", {
  input: Schema.String
}) {
  override get message() {
    return `'${this.input}' is not an address: expected [namespace/]type/key`
  }
}

/** Token counts that contradict each other. */
export class UsageInvalid extends Schema.TaggedError<UsageInvalid>()("UsageInvalid", {
  path: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `invalid usage at '${this.path}': ${this.reason}`
  }
}

/** A value from outside exceeds a limit. `limit` is the name of the limit, `value` its number. */
export class LimitExceeded extends Schema.TaggedError<LimitExceeded>()("LimitExceeded", {
  limit: Schema.String,
  value: Schema.Finite
}) {
  override get message() {
    return `${this.limit} exceeds its limit of ${this.value}`
  }
}

/** A setting an agent cannot have. */
export class AgentConfigInvalid extends Schema.TaggedError<AgentConfigInvalid>()("AgentConfigInvalid", {
  path: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `invalid agent at '${this.path}': ${this.reason}`
  }
}
