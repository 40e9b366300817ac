/**
 * Data that does not say what its word means, or says more than it may.
 *
 * `path` points at the innermost fault, so that whoever wrote the data can mend it.
 */

import * as Schema from "effect/Schema"

/**
 * A content payload that does not have the shape its type asks for (CP-2).
 *
 * `path` is a JSON pointer from the block to the innermost fault.
 */
export class BlockValidationError extends Schema.TaggedError<BlockValidationError>()("BlockValidationError", {
  path: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `invalid content at '${this.path}': ${this.reason}`
  }
}

/** A content type is built in, or registered with another schema (CP-8). */
export class BlockTypeConflict extends Schema.TaggedError<BlockTypeConflict>()("BlockTypeConflict", {
  type: Schema.String
}) {
  override get message() {
    return `content type '${this.type}' is already taken`
  }
}

/** Text that is no address (CP-12). */
export class InvalidAddress extends Schema.TaggedError<InvalidAddress>()("InvalidAddress", {
  input: Schema.String
}) {
  override get message() {
    return `'${this.input}' is not an address: expected [namespace/]type/key`
  }
}

/** Token counts that contradict each other (CP-14). */
export class UsageInvalid extends Schema.TaggedError<UsageInvalid>()("UsageInvalid", {
  path: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `invalid usage at '${this.path}': ${this.reason}`
  }
}

/** Something from outside is larger than its limit allows. */
export class LimitExceeded extends Schema.TaggedError<LimitExceeded>()("LimitExceeded", {
  limit: Schema.String,
  value: Schema.Finite
}) {
  override get message() {
    return `${this.limit} exceeds its limit of ${this.value}`
  }
}

/** A value an agent cannot have (AC-22). */
export class AgentConfigInvalid extends Schema.TaggedError<AgentConfigInvalid>()("AgentConfigInvalid", {
  path: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `invalid agent at '${this.path}': ${this.reason}`
  }
}
