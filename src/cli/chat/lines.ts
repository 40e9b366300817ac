/**
 * What a person types, line by line.
 *
 * On a terminal a line can be edited, earlier ones come back with the arrow
 * keys, and Ctrl-C is told instead of ending the process. Elsewhere lines come
 * from the pipe and nothing is written for them.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { createInterface } from "node:readline"

/**
 * The verbs of whoever types.
 *
 * @category models
 * @since 0.1.0
 */
export interface Shape {
  /** The next line; none when no more will come. */
  readonly next: (prompt: string) => Effect.Effect<Option.Option<string>>
  /** Ends when Ctrl-C is pressed the next time. */
  readonly interrupted: Effect.Effect<void>
}

/**
 * Whoever types.
 *
 * @category services
 * @since 0.1.0
 */
export class Lines extends Context.Service<Lines, Shape>()("kernai/cli/Lines") {}

/**
 * The input of this process.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerProcess: Layer.Layer<Lines> = /*#__PURE__*/ Layer.effect(
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

const open = (): { readonly lines: Shape; readonly close: () => void } => {
  const isTerminal = process.stdin.isTTY === true && process.stdout.isTTY === true
  const reader = createInterface({
    input: process.stdin,
    ...(isTerminal ? { output: process.stdout } : {}),
    terminal: isTerminal,
    historySize: 500
  })
  const waiting: Array<string> = []
  let isClosed = false
  let taker: ((line: Option.Option<string>) => void) | undefined
  const listeners = new Set<() => void>()

  const give = (line: Option.Option<string>) => {
    const take = taker
    taker = undefined
    take?.(line)
  }
  reader.on("line", (typed) => {
    const line = typed.slice(0, longest)
    if (taker === undefined) waiting.push(line)
    else give(Option.some(line))
  })
  reader.on("close", () => {
    isClosed = true
    give(Option.none())
  })
  reader.on("SIGINT", () => {
    if (listeners.size > 0) {
      for (const listener of listeners) listener()
      return
    }
    // At the prompt, what was typed is thrown away, as shells do.
    if (reader.line === "") process.stdout.write("\nCtrl-D or /exit ends the chat")
    reader.write(null, { ctrl: true, name: "e" })
    reader.write(null, { ctrl: true, name: "u" })
    process.stdout.write("\n")
    reader.prompt()
  })

  const next = (prompt: string) =>
    Effect.callback<Option.Option<string>>((resume) => {
      const line = waiting.shift()
      if (line !== undefined) return resume(Effect.succeedSome(line))
      if (isClosed) return resume(Effect.succeedNone)
      taker = (line) => resume(Effect.succeed(line))
      reader.setPrompt(prompt)
      if (isTerminal) reader.prompt()
      return Effect.sync(() => {
        taker = undefined
      })
    })

  const interrupted = Effect.callback<void>((resume) => {
    const listener = () => {
      listeners.delete(listener)
      resume(Effect.void)
    }
    listeners.add(listener)
    return Effect.sync(() => listeners.delete(listener))
  })

  return { lines: { next, interrupted }, close: () => reader.close() }
}
