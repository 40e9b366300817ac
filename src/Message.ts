/**
 * One turn of a conversation: who speaks and the parts of what is said (AC-2, BP-150).
 *
 * @since 0.1.0
 */
import type { Content, JsonObject } from "./Content.ts"

/** Who speaks. */
export type Role = "system" | "user" | "assistant" | "tool"

/** One message. */
export interface Message {
  readonly role: Role
  readonly content: ReadonlyArray<Content>
  readonly name?: string
  readonly metadata?: JsonObject
}
