/** Reads lines on demand from a terminal, with Node's readline for editing and completion, or from a pipe. */

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
import { words } from "./chatCommands.ts"
import * as InputHistory from "./inputHistory.ts"
import * as KeyInput from "./keyInput.ts"
import { PromptDisplay } from "./promptDisplay.ts"

type Line = Effect.Effect<Option.Option<string>, CommandFailed>

/** Reads lines. At the end of the input, a line is none. */
export interface Shape {
  /** Reads the next message, which may have been typed ahead, and have several lines. */
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

/** Reads the standard input. On a terminal, `keepsHistory` offers the messages of earlier chats. */
export const layerProcess = (keepsHistory: boolean) =>
  Layer.effect(
    LineReader,
    Effect.gen(function* () {
      if (!process.stdin.isTTY || !process.stdout.isTTY) return yield* fromStream((yield* Stdio.Stdio).stdin)
      const history = keepsHistory ? yield* InputHistory.ofUser : InputHistory.none
      return yield* fromTerminal(process.stdin, process.stdout, history)
    })
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
  output: NodeJS.WritableStream,
  history: InputHistory.InputHistory = InputHistory.none
): Effect.Effect<Shape, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const keys = KeyInput.from(input)
      const display = new PromptDisplay(output)
      const reader = createInterface({
        input: keys.stream,
        output: display,
        terminal: true,
        historySize: 500,
        history: [...history.messages],
        completer: (line: string) => [words.filter((word) => line !== "" && word.startsWith(line)), line]
      })
      return { keys, reader, display }
    }),
    ({ display, keys, reader }) =>
      Effect.sync(() => {
        output.write(KeyInput.pasteMarks.off)
        reader.close()
        display.release()
        keys.end()
      })
  ).pipe(Effect.map(({ display, reader }) => readerOf(reader, display, output, history)))

const readerOf = (
  reader: Interface,
  display: PromptDisplay,
  output: NodeJS.WritableStream,
  history: InputHistory.InputHistory
): Shape => {
  const { ahead, isPrompting, prompt } = promptsOf(reader, display, output)
  const typed = (text: string): Line =>
    Effect.suspend(() => {
      const line = ahead.shift()
      if (line === undefined) return prompt(text, false)
      output.write(`${text}${line}\n`)
      return Effect.succeedSome(line)
    })
  const read = (text: string): Line =>
    Effect.tap(typed(text), (line) =>
      Option.isSome(line) && line.value.trim() !== "" ? history.add(line.value) : Effect.void
    )
  return {
    read: (text) => Effect.map(read(text), whole),
    ask: (text) => Effect.map(prompt(text, true), whole),
    interrupted: interruptsOf(reader, output, isPrompting),
    isTerminal: true
  }
}

/** Prompts for one line at a time, and keeps the lines that are typed while nothing prompts. */
const promptsOf = (reader: Interface, display: PromptDisplay, output: NodeJS.WritableStream) => {
  const ahead: Array<string> = []
  let isClosed = false
  let isQuestion = false
  let waiting: ((line: Option.Option<string>) => void) | undefined
  const give = (line: Option.Option<string>) => {
    const resume = waiting
    close()
    resume?.(line)
  }
  const close = () => {
    waiting = undefined
    isQuestion = false
    display.isShown = false
  }
  // Answers to questions, and lines that continue, are not offered again.
  reader.on("history", (lines: Array<string>) => {
    if (isQuestion || lines[0]?.endsWith("\\") === true) lines.shift()
  })
  reader.on("line", (line) => {
    if (waiting === undefined) ahead.push(line)
    else if (isQuestion || !line.endsWith("\\")) give(Option.some(line))
    else {
      reader.prompt()
      reader.write(`${line.slice(0, -1)}${KeyInput.lineBreak}`)
    }
  })
  reader.on("close", () => {
    isClosed = true
    // Ctrl-D leaves the cursor behind the prompt.
    if (waiting !== undefined) output.write("\n")
    give(Option.none())
  })
  // A closed terminal cannot be reset; the end of its input follows.
  reader.on("error", () => {})

  const prompt = (text: string, asks: boolean): Line =>
    Effect.callback((resume) => {
      if (isClosed) return resume(Effect.succeedNone)
      isQuestion = asks
      waiting = (line) => resume(Effect.succeed(line))
      reader.setPrompt(text)
      output.write(KeyInput.pasteMarks.on)
      display.isShown = true
      reader.prompt(true)
      return Effect.sync(close)
    })
  return { ahead, prompt, isPrompting: () => waiting !== undefined }
}

/** Returns a line with its line breaks. */
const whole = Option.map((line: string) => line.replaceAll(KeyInput.lineBreak, "\n"))

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
