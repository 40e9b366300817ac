/**
 * What a person types, line by line.
 *
 * On a terminal a line can be edited, earlier ones come back with the arrow
 * keys, and Ctrl-C is told instead of ending the process. Elsewhere lines come
 * from the pipe, which is read as they are asked for, and nothing is written for
 * them. A line has a limit: what goes on and on is no message.
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { createInterface } from "node:readline"
import type { Readable } from "node:stream"
import { Codes, CommandFailed } from "../exit.ts"

/** The verbs of whoever types. */
export interface Shape {
  /** The next line; none when no more will come. One that is longer than a million characters fails. */
  readonly next: (prompt: string) => Effect.Effect<Option.Option<string>, CommandFailed>
  /**
   * The next line, as the answer to a question. On a terminal it is one that is typed from now on: what was typed ahead,
   * or pasted, was typed by somebody who had not read the question, and is left to `next`.
   */
  readonly answer: (prompt: string) => Effect.Effect<Option.Option<string>, CommandFailed>
  /** Ends when Ctrl-C is pressed the next time. */
  readonly interrupted: Effect.Effect<void>
  /** Whether a person is there, who sees what fails and can try it again. */
  readonly isTerminal: boolean
}

/** Whoever types. */
export class Lines extends Context.Service<Lines, Shape>()("kernai/cli/Lines") {}

/** Whether a line ends the chat, be it at the prompt or at a question. */
export const isEnd = (line: string): boolean => /^\/\s*(?:exit|quit)(?:\s|$)/.test(line.trim())

/** The input of this process. */
export const layerProcess: Layer.Layer<Lines> = Layer.effect(
  Lines,
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => open()),
      ({ close }) => Effect.sync(close)
    ),
    ({ lines }) => lines
  )
)

const longest = 1_000_000

const tooLong = new CommandFailed({
  code: Codes.failed,
  reason: `a line of the input is longer than ${longest} characters`
})

const lineOf = (line: string): Effect.Effect<Option.Option<string>, CommandFailed> =>
  line.length > longest ? Effect.fail(tooLong) : Effect.succeedSome(line)

interface Open {
  readonly lines: Shape
  readonly close: () => void
}

const open = (): Open =>
  process.stdin.isTTY && process.stdout.isTTY ? ofTerminal(process.stdin, process.stdout) : ofPipe(process.stdin)

/** Lines of a pipe. No more of it is held than a line and the piece in which it ended. */
export const ofPipe = (input: Readable): Open => {
  let held = ""
  let searched = 0
  let failure: CommandFailed | undefined
  let look = () => {}
  const wake = () => look()
  input.setEncoding("utf8")
  for (const event of ["readable", "end", "close"]) input.on(event, wake)
  input.on("error", (error) => {
    failure = new CommandFailed({ code: Codes.usage, reason: `the input cannot be read: ${error.message}` })
    look()
  })

  /** What is there of the next line; undefined when it has to be waited for. */
  const read = (): Effect.Effect<Option.Option<string>, CommandFailed> | undefined => {
    for (;;) {
      const end = held.indexOf("\n", searched)
      if (end >= 0) {
        const line = held.slice(0, held[end - 1] === "\r" ? end - 1 : end)
        held = held.slice(end + 1)
        searched = 0
        return lineOf(line)
      }
      if (held.length > longest) return Effect.fail(tooLong)
      searched = held.length
      const piece: unknown = input.read()
      if (typeof piece === "string") {
        held += piece
        continue
      }
      if (failure !== undefined) return Effect.fail(failure)
      if (!input.readableEnded && !input.destroyed) return undefined
      const last = held
      held = ""
      return last === "" ? Effect.succeedNone : lineOf(last)
    }
  }

  const next = () =>
    Effect.callback<Option.Option<string>, CommandFailed>((resume) => {
      look = () => {
        const line = read()
        if (line === undefined) return
        look = () => {}
        resume(line)
      }
      look()
      return Effect.sync(() => {
        look = () => {}
      })
    })

  return { lines: { next, answer: next, interrupted: Effect.never, isTerminal: false }, close: () => input.destroy() }
}

/** Lines of a terminal. */
export const ofTerminal = (input: NodeJS.ReadableStream, output: NodeJS.WritableStream): Open => {
  const reader = createInterface({ input, output, terminal: true, historySize: 500 })
  const waiting: Array<string> = []
  let isClosed = false
  let taker: ((line: string | undefined) => void) | undefined
  const listeners = new Set<() => void>()

  const give = (line: string | undefined) => {
    const take = taker
    taker = undefined
    take?.(line)
  }
  reader.on("line", (line) => {
    if (taker === undefined) waiting.push(line)
    else give(line)
  })
  // A terminal that is closed cannot be set back: no more comes of it, and the end of its input tells that.
  reader.on("error", () => {})
  reader.on("close", () => {
    isClosed = true
    give(undefined)
  })
  reader.on("SIGINT", () => {
    if (listeners.size > 0) {
      for (const listener of listeners) listener()
      return
    }
    // An answer that was stopped is coming to its end.
    if (taker === undefined) return
    // At the prompt, what was typed is thrown away, as shells do.
    if (reader.line === "") output.write("\nCtrl-D or /exit ends the chat")
    reader.write(null, { ctrl: true, name: "e" })
    reader.write(null, { ctrl: true, name: "u" })
    output.write("\n")
    reader.prompt()
  })

  const answer = (prompt: string) =>
    Effect.callback<Option.Option<string>, CommandFailed>((resume) => {
      if (isClosed) return resume(Effect.succeedNone)
      taker = (line) => resume(line === undefined ? Effect.succeedNone : lineOf(line))
      reader.setPrompt(prompt)
      reader.prompt()
      return Effect.sync(() => {
        taker = undefined
      })
    })

  const next = (prompt: string) =>
    Effect.suspend(() => {
      const line = waiting.shift()
      return line === undefined ? answer(prompt) : lineOf(line)
    })

  const interrupted = Effect.callback<void>((resume) => {
    const listener = () => {
      listeners.delete(listener)
      resume(Effect.void)
    }
    listeners.add(listener)
    return Effect.sync(() => listeners.delete(listener))
  })

  return { lines: { next, answer, interrupted, isTerminal: true }, close: () => reader.close() }
}
