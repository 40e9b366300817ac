/**
 * Routing addresses: who a message is for, and what it is about (CP-12).
 *
 * @since 0.1.0
 */

/** Parts of an agent's address. */
export interface AgentIdParts {
  readonly type: string
  readonly key: string
  readonly namespace?: string
}

/** Parts of a topic's address. */
export interface TopicIdParts {
  readonly type: string
  readonly source?: string
  readonly namespace?: string
}
