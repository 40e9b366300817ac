/**
 * Where a command writes: the output, and the progress beside it.
 *
 * Progress belongs to people. It goes where the output goes, unless the output
 * is redirected and the error stream still is a terminal: then the file gets
 * the answer alone. Colours are for terminals, and for nobody when `NO_COLOR`
 * is set.
 */

import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import { Codes } from "./exit.ts"

/** What a command writes with. Nothing is added to the texts. */
export interface Shape {
  /** The output: answers, and what machines read. */
  readonly out: (text: string) => void
  readonly progress: (text: string) => void
  /** Why it did not work. */
  readonly error: (text: string) => void
  /** How wide a line of progress may be. */
  readonly columns: number
  /** How many lines of progress are seen at once. */
  readonly rows: number
  /** Whether progress may be coloured. */
  readonly colors: boolean
}

/** The screen. */
export class Screen extends Context.Service<Screen, Shape>()("kernai/cli/Screen") {}

/** Whether to colour what goes to a stream. */
export const wantsColors = (
  isTerminal: boolean,
  environment: { readonly [name: string]: string | undefined }
): boolean => isTerminal && (environment["NO_COLOR"] ?? "") === "" && environment["TERM"] !== "dumb"

/**
 * Whether an output cannot be written because nobody reads it any more: what runs goes on to its end.
 *
 * Whoever reads a pipe may have seen enough (`kernai run | head`). A terminal that is closed tells by a signal as well,
 * which ends what runs in order.
 */
export const isUnread = (code: string, isTerminal: boolean): boolean =>
  code === "EPIPE" || (code === "EIO" && isTerminal)

/** The streams of this process. What cannot be written because a disk is full ends it. */
export const layerProcess: Layer.Layer<Screen> = Layer.sync(Screen, () => {
  const { env, stderr, stdout } = process
  const beside = !stdout.isTTY && stderr.isTTY ? stderr : stdout
  for (const stream of [stdout, stderr]) {
    stream.on("error", ({ code = "unknown" }: NodeJS.ErrnoException) => {
      if (isUnread(code, stream.isTTY)) return
      stderr.write(`kernai: the output cannot be written (${code})\n`)
      process.exit(Codes.failed)
    })
  }
  return {
    out: (text) => void stdout.write(text),
    progress: (text) => void beside.write(text),
    error: (text) => void stderr.write(text),
    columns: Math.min(beside.columns || 120, 200),
    rows: beside.rows || 24,
    colors: wantsColors(beside.isTTY, env)
  }
})
