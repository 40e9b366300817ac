/** Reads lines on demand from a terminal, with Node's readline for editing and history, or from a pipe. */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Pull from "effect/Pull"
import type * as Scope from "effect/Scope"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import { createInterface, type Interface } from "node:readline"
import { type CommandFailed, usage } from "../exit.ts"

type Line = Effect.Effect<Option.Option<string>, CommandFailed>

/** Reads lines. At the end of the input, a line is none. */
export interface Shape {
  /** Reads the next line, which may have been typed ahead. */
  readonly read: (prompt: string) => Line
  /**
   * Reads the answer to a question. On a terminal, only a line typed from now on counts. A line typed ahead cannot be
   * an answer to the question, and is left to `read`.
   */
  readonly ask: (prompt: string) => Line
  /** Completes at the next Ctrl-C. */
  readonly interrupted: Effect.Effect<void>
  readonly isTerminal: boolean
}

/** The input of a command. */
export class LineReader extends Context.Service<LineReader, Shape>()("kernai/cli/LineReader") {}

/** Reads the standard input. */
export const layerProcess = Layer.effect(
  LineReader,
  Effect.suspend(() =>
    process.stdin.isTTY && process.stdout.isTTY
      ? fromTerminal(process.stdin, process.stdout)
      : Stdio.Stdio.use(({ stdin }) => fromStream(stdin))
  )
)

/** Reads the lines of a stream. */
export const fromStream = <E extends { readonly message: string }>(
  input: Stream.Stream<Uint8Array, E>
): Effect.Effect<Shape, never, Scope.Scope> =>
  Effect.map(Stream.toPull(input.pipe(Stream.decodeText, Stream.splitLines, Stream.rechunk(1))), (pull) => {
    const line: Line = pull.pipe(
      Effect.map(([line]) => Option.some(line)),
      Pull.catchDone(() => Effect.succeedNone),
      Effect.mapError((error) => usage(`the input cannot be read: ${error.message}`))
    )
    return { read: () => line, ask: () => line, interrupted: Effect.never, isTerminal: false }
  })

/** Reads the lines that are typed on a terminal. */
export const fromTerminal = (
  input: NodeJS.ReadableStream,
  output: NodeJS.WritableStream
): Effect.Effect<Shape, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => createInterface({ input, output, terminal: true, historySize: 500 })),
    (reader) => Effect.sync(() => reader.close())
  ).pipe(Effect.map((reader) => readerOf(reader, output)))

const readerOf = (reader: Interface, output: NodeJS.WritableStream): Shape => {
  const ahead: Array<string> = []
  let isClosed = false
  let waiting: ((line: Option.Option<string>) => void) | undefined
  const give = (line: Option.Option<string>) => {
    const resume = waiting
    waiting = undefined
    resume?.(line)
  }
  reader.on("line", (line) => {
    if (waiting === undefined) ahead.push(line)
    else give(Option.some(line))
  })
  reader.on("close", () => {
    isClosed = true
    give(Option.none())
  })
  // A closed terminal cannot be reset; the end of its input follows.
  reader.on("error", () => {})

  const ask = (prompt: string): Line =>
    Effect.callback((resume) => {
      if (isClosed) return resume(Effect.succeedNone)
      waiting = (line) => resume(Effect.succeed(line))
      reader.setPrompt(prompt)
      reader.prompt()
      return Effect.sync(() => {
        waiting = undefined
      })
    })
  const read = (prompt: string): Line =>
    Effect.suspend(() => {
      const line = ahead.shift()
      return line === undefined ? ask(prompt) : Effect.succeedSome(line)
    })
  return { read, ask, interrupted: interruptsOf(reader, output, () => waiting !== undefined), isTerminal: true }
}

/** Emits Ctrl-C, which stops the streaming answer. At the prompt it discards the typed line, like a shell. */
const interruptsOf = (
  reader: Interface,
  output: NodeJS.WritableStream,
  isPrompting: () => boolean
): Effect.Effect<void> => {
  const listeners = new Set<() => void>()
  reader.on("SIGINT", () => {
    if (listeners.size > 0) return listeners.forEach((listener) => listener())
    if (!isPrompting()) return
    const hint = reader.line === "" ? "\nCtrl-D or /exit ends the chat\n" : "\n"
    reader.write(null, { ctrl: true, name: "e" })
    reader.write(null, { ctrl: true, name: "u" })
    output.write(hint)
    reader.prompt()
  })
  return Effect.callback((resume) => {
    const listener = () => {
      listeners.delete(listener)
      resume(Effect.void)
    }
    listeners.add(listener)
    return Effect.sync(() => listeners.delete(listener))
  })
}
