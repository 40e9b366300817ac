/** The types of served sessions. */

import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { AcpProblem } from "./acpProblem.ts"
import type { McpServer } from "./acpWire.ts"

/** A mode that the person can choose, such as to plan before anything is changed. */
export interface Mode {
  readonly id: string
  readonly name: string
  readonly description?: string
}

/** A program that runs in a terminal of the editor. */
export interface Terminal {
  /** The output so far, without its beginning if it is longer than 1 MiB, and whether the program has ended. */
  readonly output: Effect.Effect<{ readonly text: string; readonly hasEnded: boolean }, AcpProblem>
  /** Waits for the end. The code of a program that was ended by a signal is 137. */
  readonly exitCode: Effect.Effect<number, AcpProblem>
}

/** A program to run in a terminal. */
export interface TerminalOptions {
  readonly program: string
  readonly args: ReadonlyArray<string>
  readonly cwd: string
  /** The call whose input has this `command` shows the terminal. */
  readonly command: string
}

/** What an editor does for its agent. A function is absent if the editor does not offer it. Paths are absolute. */
export interface Editor {
  /** Returns the text of a file as the person sees it, with changes that are not saved. */
  readonly readTextFile?: (path: string) => Effect.Effect<string, AcpProblem>
  readonly writeTextFile?: (path: string, content: string) => Effect.Effect<void, AcpProblem>
  /** Runs a program in a terminal, until the scope closes. */
  readonly startTerminal?: (options: TerminalOptions) => Effect.Effect<Terminal, AcpProblem, Scope.Scope>
}

/** A session that a client opened. */
export interface Opened {
  readonly id: string
  /** The absolute path of the folder that the person has open. */
  readonly cwd: string
  /** The MCP servers whose tools the client wants the agent to have. */
  readonly mcpServers: ReadonlyArray<typeof McpServer.Type>
  /** What the editor does for the agent. */
  readonly editor: Editor
  /** The id of the mode now. Undefined if the agent has no modes. */
  readonly mode: Effect.Effect<string | undefined>
}
