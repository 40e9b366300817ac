/** Asks the client for its own files and terminals. */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Schema from "effect/Schema"
import type { JsonObject } from "../../kit/json.ts"
import type { Peer } from "./acpPeer.ts"
import { type AcpProblem, failed } from "./acpProblem.ts"
import type { Editor, Terminal, TerminalOptions } from "./acpTypes.ts"
import * as Wire from "./acpWire.ts"

/** The abilities that a client has named. */
export type Abilities = (typeof Wire.Initialize.Type)["clientCapabilities"]

/** Returns what a client does for a session. `onTerminal` receives each terminal with its command. */
export const editorOf = (
  peer: Peer,
  sessionId: string,
  abilities: Abilities,
  onTerminal: (command: string, terminalId: string) => Effect.Effect<void>
): Editor => {
  const ask = <A>(method: string, params: JsonObject, result: Schema.Decoder<A>) =>
    peer.request(method, { sessionId, ...params }, result)
  const quickly = <A>(method: string, params: JsonObject, result: Schema.Decoder<A>) =>
    Effect.flatMap(
      Effect.timeoutOption(ask(method, params, result), patience),
      Option.match({ onNone: () => Effect.fail(failed("the editor does not answer")), onSome: Effect.succeed })
    )
  const readTextFile = (path: string) =>
    Effect.map(quickly("fs/read_text_file", { path }, Wire.TextFile), ({ content }) => content)
  const writeTextFile = (path: string, content: string) =>
    Effect.asVoid(quickly("fs/write_text_file", { path, content }, Wire.Done))
  const startTerminal = Effect.fnUntraced(function* ({ args, command, cwd, program }: TerminalOptions) {
    const given = { command: program, args, cwd, env: [], outputByteLimit }
    const { terminalId } = yield* quickly("terminal/create", given, Wire.CreatedTerminal)
    // Ends the program, if it runs.
    yield* Effect.addFinalizer(() => Effect.ignore(quickly("terminal/release", { terminalId }, Wire.Done)))
    yield* onTerminal(command, terminalId)
    return terminalOf(
      quickly("terminal/output", { terminalId }, Wire.TerminalOutput),
      ask("terminal/wait_for_exit", { terminalId }, Wire.TerminalExit)
    )
  })
  return {
    ...(abilities?.fs?.readTextFile === true ? { readTextFile } : {}),
    ...(abilities?.fs?.writeTextFile === true ? { writeTextFile } : {}),
    ...(abilities?.terminal === true ? { startTerminal } : {})
  }
}

const terminalOf = (
  output: Effect.Effect<typeof Wire.TerminalOutput.Type, AcpProblem>,
  exit: Effect.Effect<typeof Wire.TerminalExit.Type, AcpProblem>
): Terminal => ({
  output: Effect.map(output, ({ exitStatus, output }) => ({
    text: output,
    hasEnded: exitStatus !== undefined && exitStatus !== null
  })),
  exitCode: Effect.map(exit, ({ exitCode }) => exitCode ?? killed)
})

/** How long a client may take for everything but waiting for a program. */
const patience = "30 seconds"

/** Bytes of output that the client keeps. */
const outputByteLimit = 1024 * 1024

const killed = 137
