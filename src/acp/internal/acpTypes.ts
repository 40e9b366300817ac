/** The types of served sessions. */

import type * as Effect from "effect/Effect"
import type { McpServer } from "./acpWire.ts"

/** A mode that the person can choose, such as to plan before anything is changed. */
export interface Mode {
  readonly id: string
  readonly name: string
  readonly description?: string
}

/** A session that a client opened. */
export interface Opened {
  readonly id: string
  /** The absolute path of the folder that the person has open. */
  readonly cwd: string
  /** The MCP servers whose tools the client wants the agent to have. */
  readonly mcpServers: ReadonlyArray<typeof McpServer.Type>
  /** The id of the mode now. Undefined if the agent has no modes. */
  readonly mode: Effect.Effect<string | undefined>
}
