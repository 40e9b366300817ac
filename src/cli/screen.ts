/**
 * The output of a command, and its progress. Answers go to the output and progress to the error stream, so that a file
 * or another program gets only the answer.
 */

import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import { styleText } from "node:util"
import { Codes } from "./exit.ts"
import type { Look } from "./terminalText.ts"

/** The look of answers, and whether a terminal shows them. */
export interface Answers extends Look {
  readonly isTerminal: boolean
}

/** Writes texts unchanged. `Look` applies to progress. */
export interface Shape extends Look {
  readonly answers: Answers
  /** Writes answers, and JSON. */
  readonly out: (text: string) => void
  readonly progress: (text: string) => void
  readonly error: (text: string) => void
}

/** The screen of a command. */
export class Screen extends Context.Service<Screen, Shape>()("kernai/cli/Screen") {}

/**
 * Returns true if a write failed because the reader is gone (`kernai run | head`, a closed terminal). The command
 * continues, since a run does not depend on its reader, and a closed terminal also sends a signal.
 */
export const isUnread = (code: string, isTerminal: boolean): boolean =>
  code === "EPIPE" || (code === "EIO" && isTerminal)

/** Writes to the streams of this process. A write that fails for another reason ends the process. */
export const layerProcess: Layer.Layer<Screen> = Layer.sync(Screen, () => {
  const { stderr, stdout } = process
  for (const stream of [stdout, stderr]) {
    stream.on("error", ({ code = "unknown" }: NodeJS.ErrnoException) => {
      if (isUnread(code, stream.isTTY)) return
      stderr.write(`kernai: the output cannot be written (${code})\n`)
      process.exit(Codes.failed)
    })
  }
  return {
    out: (text) => void stdout.write(text),
    progress: (text) => void stderr.write(text),
    error: (text) => void stderr.write(text),
    ...lookOf(stderr, stdout),
    answers: { ...lookOf(stdout, stderr), isTerminal: stdout.isTTY }
  }
})

/** Returns the look of a stream. Its width is that of the other one if only that is a terminal. */
const lookOf = (stream: NodeJS.WriteStream, other: NodeJS.WriteStream): Look => ({
  columns: Math.min(stream.columns || other.columns || 120, 200),
  // Node decides from the stream, NO_COLOR, FORCE_COLOR and TERM.
  colors: styleText("bold", ".", { stream }) !== "."
})
