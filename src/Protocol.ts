/**
 * An external system a model addresses by a block type of its own (BP-77).
 *
 * Where a skill has an input with a shape, a protocol has a language: its
 * handler is given the whole block and answers with text, with any JSON, or
 * with a message that is taken as it is.
 *
 * @since 0.1.0
 */

import * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type { Block } from "./Block.ts"
import type { JsonObject } from "./internal/base/json.ts"
import { misnamed } from "./internal/base/ids.ts"
import { DefinitionInvalid } from "./KernelError.ts"
import type { CallScope, Effects } from "./Skill.ts"

export { DefinitionInvalid }

/**
 * What a protocol's handler is given beside its block.
 *
 * @category models
 * @since 0.1.0
 */
export interface ProtocolScope extends CallScope {
  /**
   * Why the agent may not call this skill, if it may not. A protocol through which skills can be reached asks here, so
   * that it is no way around the agent's list, the host's, the policy or what the model can do (S-15).
   *
   * An agent without a list of skills, or one that lists this protocol and none of these skills, was given the
   * protocol as a whole.
   */
  readonly refusal: (skill: string) => string | undefined
}

/**
 * A call of a skill, by its name and input.
 *
 * @category models
 * @since 0.1.0
 */
export interface SkillRequest {
  readonly name: string
  readonly input: JsonObject
}

/**
 * A protocol. A handler that answers with a `Message` speaks for itself; null is no text.
 *
 * @category models
 * @since 0.1.0
 */
export interface AnyProtocol<out R = never> {
  /** The block type it answers to. */
  readonly name: string
  /** What `/protocols` tells the model. Whole blocks in it are shown as they are, half a block is escaped. */
  readonly documentation: string | null
  readonly effects: Effects
  /** How long one call may take. Default: `Limits.skillTimeout`. */
  readonly timeout?: Duration.Duration
  readonly handle: (block: Block, scope: ProtocolScope) => Effect.Effect<unknown, unknown, R>
  /**
   * The skill call that a block is another way to make, if it is one: policies judge that call too, and the stricter
   * decision holds.
   */
  readonly skillOf?: (block: Block) => SkillRequest | undefined
}

/**
 * What a protocol needs.
 *
 * @category models
 * @since 0.1.0
 */
export type Services<P> = P extends AnyProtocol<infer R> ? R : never

/**
 * Makes a protocol. Its `effects` are `write` unless said otherwise.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = <A, E, R = never>(
  name: string,
  options: {
    readonly documentation?: string | null | undefined
    readonly effects?: Effects | undefined
    /** How long one call may take. Default: `Limits.skillTimeout`. */
    readonly timeout?: Duration.Input | undefined
    readonly handle: (block: Block, scope: ProtocolScope) => Effect.Effect<A, E, R>
    readonly skillOf?: ((block: Block) => SkillRequest | undefined) | undefined
  }
): AnyProtocol<R> => ({
  name,
  documentation: options.documentation ?? null,
  effects: options.effects ?? "write",
  ...(options.timeout === undefined ? {} : { timeout: Duration.fromInputUnsafe(options.timeout) }),
  handle: options.handle,
  ...(options.skillOf === undefined ? {} : { skillOf: options.skillOf })
})

/**
 * Block types with a meaning of their own: no protocol can have them (BP-81).
 *
 * @category models
 * @since 0.1.0
 */
export const reserved: ReadonlySet<string> = new Set([
  "block",
  "command",
  "error",
  "final",
  "json",
  "media",
  "plan",
  "result"
])

/**
 * Tells why a name cannot be a protocol's, if so.
 *
 * @category guards
 * @since 0.1.0
 */
export const problem = (name: string): DefinitionInvalid | undefined =>
  reserved.has(name) ? new DefinitionInvalid({ name, reason: "the name is reserved" }) : misnamed(name)
