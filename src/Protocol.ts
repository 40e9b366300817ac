/**
 * An external system that a model addresses by its own block type.
 *
 * A skill has a typed input; a protocol has a language of its own. Its handler receives the whole block, and answers
 * with text, JSON or a whole message.
 *
 * @since 0.1.0
 */

import * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type { Block } from "./Block.ts"
import type { JsonObject } from "./kit/json.ts"
import { misnamed } from "./internal/words/ids.ts"
import { DefinitionInvalid } from "./KernelError.ts"
import type { CallScope, Effects } from "./Skill.ts"

export { DefinitionInvalid }

/**
 * The circumstances of a protocol call.
 *
 * @category models
 * @since 0.1.0
 */
export interface ProtocolScope extends CallScope {
  /**
   * Returns why the agent may not call a skill, or undefined. A protocol that gives access to skills checks it, so that
   * it cannot bypass the agent's list, the host's list, the policy or the capabilities of the model.
   *
   * An agent without a list of skills may use the whole protocol, and so may an agent that lists this protocol and none
   * of its skills.
   */
  readonly refusal: (skill: string) => string | undefined
}

/**
 * The call of a skill.
 *
 * @category models
 * @since 0.1.0
 */
export interface SkillRequest {
  readonly name: string
  readonly input: JsonObject
}

/**
 * A protocol.
 *
 * @category models
 * @since 0.1.0
 */
export interface AnyProtocol<out R = never> {
  /** Its block type. */
  readonly name: string
  /** Its entry in `/protocols`. Whole blocks in it are shown as they are, incomplete ones are escaped. */
  readonly documentation: string | null
  readonly effects: Effects
  /** Maximum duration of one call. Default: `Limits.skillTimeout`. */
  readonly timeout?: Duration.Duration
  readonly handle: (block: Block, scope: ProtocolScope) => Effect.Effect<unknown, unknown, R>
  /**
   * Returns the skill call that a block stands for, if any. Policies decide about that call too, and the stricter
   * decision applies.
   */
  readonly skillOf?: (block: Block) => SkillRequest | undefined
}

/**
 * The services a protocol requires.
 *
 * @category models
 * @since 0.1.0
 */
export type Services<P> = P extends AnyProtocol<infer R> ? R : never

/**
 * Creates a protocol. `effects` defaults to `write`.
 *
 * `handle` may return what a skill may return, or a whole `Message`, which the model receives as it is. Unlike a
 * skill's, a list without texts, media or contents is returned as JSON. Failures and defects are reported to the model
 * like those of a skill.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = <A, E, R = never>(
  name: string,
  options: {
    readonly documentation?: string | null | undefined
    readonly effects?: Effects | undefined
    /** Maximum duration of one call. Default: `Limits.skillTimeout`. */
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
 * Block types that no protocol can have.
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
 * Returns the error if no protocol can have this name.
 *
 * @category guards
 * @since 0.1.0
 */
export const problem = (name: string): DefinitionInvalid | undefined =>
  reserved.has(name) ? new DefinitionInvalid({ name, reason: "the name is reserved" }) : misnamed(name)
