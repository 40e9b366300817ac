import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Option, Stream } from "effect"
import { PassThrough } from "node:stream"
import * as LineReader from "../../../src/cli/chat/lineReader.ts"

describe("lines from a pipe", () => {
  const linesOf = Effect.fnUntraced(function* (...pieces: ReadonlyArray<string>) {
    const { read } = yield* LineReader.fromStream(Stream.encodeText(Stream.fromIterable(pieces)))
    const lines: Array<string> = []
    for (;;) {
      const line = yield* read("> ")
      if (Option.isNone(line)) return lines
      lines.push(line.value)
    }
  })

  it.effect("are the same in chunks of any size, with empty lines and a last line without a line end", () =>
    Effect.gen(function* () {
      const whole = "a\r\n\nb\r\n\r\ntwö\nlast"
      const expected = ["a", "", "b", "", "twö", "last"]
      for (let size = 1; size <= whole.length; size++) {
        const pieces = Array.from({ length: whole.length }, (_, at) => whole.slice(at * size, (at + 1) * size))
        assert.deepStrictEqual(yield* linesOf(...pieces), expected, `in pieces of ${size}`)
      }
      assert.deepStrictEqual(yield* linesOf(`${whole}\n`), expected)
      assert.deepStrictEqual(yield* linesOf(), [])
    })
  )

  it.effect("are read only on request", () =>
    Effect.gen(function* () {
      let pieces = 0
      const piece = Effect.sync(() => `line ${++pieces}\n`)
      const { read } = yield* LineReader.fromStream(Stream.encodeText(Stream.fromEffectRepeat(piece)))
      assert.deepStrictEqual(yield* read("> "), Option.some("line 1"))
      assert.strictEqual(pieces, 1)
    })
  )

  it.effect("end with an error when the input cannot be read", () =>
    Effect.gen(function* () {
      const { read } = yield* LineReader.fromStream(Stream.fail(new Error("it broke")))
      const error = yield* Effect.flip(read("> "))
      assert.deepInclude(error, { code: 2, reason: "the input cannot be read: it broke" })
    })
  )
})

describe("lines from a terminal", () => {
  it.live("typed ahead are kept for the next message, and never answer a question (DR-22)", () =>
    Effect.gen(function* () {
      const input = new PassThrough()
      const { ask, read } = yield* LineReader.fromTerminal(input, new PassThrough())
      input.write("go\nyes, do\n")
      assert.deepStrictEqual(yield* read("> "), Option.some("go"))
      const answer = yield* Effect.forkChild(ask("? "), { startImmediately: true })
      yield* Effect.promise(() => new Promise(setImmediate))
      assert.isUndefined(answer.pollUnsafe())
      input.write("no\n")
      assert.deepStrictEqual(yield* Fiber.join(answer), Option.some("no"))
      input.write("and more\n")
      assert.deepStrictEqual(yield* read("> "), Option.some("yes, do"))
      assert.deepStrictEqual(yield* read("> "), Option.some("and more"))
      // A question that is no longer asked takes no line.
      yield* Fiber.interrupt(yield* Effect.forkChild(ask("? "), { startImmediately: true }))
      input.write("late\n")
      assert.deepStrictEqual(yield* read("> "), Option.some("late"))
      input.end()
      assert.deepStrictEqual(yield* ask("? "), Option.none())
    })
  )

  it.live("leave no listener on the terminal when the chat ends", () =>
    Effect.gen(function* () {
      const [input, output] = [new PassThrough(), new PassThrough()]
      const listeners = () =>
        [input, output].map((stream) => stream.eventNames().map((name) => [name, stream.listenerCount(name)]))
      const before = listeners()
      yield* Effect.scoped(LineReader.fromTerminal(input, output))
      assert.deepStrictEqual(listeners(), before)
    })
  )

  it.live("typed during an answer appear at the next prompt, and not in the answer", () =>
    Effect.gen(function* () {
      const input = new PassThrough()
      const output = new PassThrough({ encoding: "utf8" })
      const { read } = yield* LineReader.fromTerminal(input, output)
      const turn = Effect.promise(() => new Promise(setImmediate))
      input.write("now\rlater\rhalf")
      yield* turn
      assert.isNull(output.read())
      assert.deepStrictEqual(yield* read("> "), Option.some("now"))
      assert.deepStrictEqual(yield* read("> "), Option.some("later"))
      assert.strictEqual(output.read(), "> now\n> later\n")
      const line = yield* Effect.forkChild(read("> "), { startImmediately: true })
      assert.include(output.read(), "> half")
      input.write(" a line\r")
      assert.deepStrictEqual(yield* Fiber.join(line), Option.some("half a line"))
    })
  )

  it.live("are discarded at Ctrl-C at the prompt; elsewhere Ctrl-C interrupts the answer", () =>
    Effect.gen(function* () {
      const input = new PassThrough()
      const output = new PassThrough({ encoding: "utf8" })
      const { interrupted, read } = yield* LineReader.fromTerminal(input, output)
      let written = ""
      const until = (text: string) =>
        Effect.eventually(
          Effect.suspend(() => {
            written += output.read() ?? ""
            return written.includes(text) ? Effect.void : Effect.andThen(Effect.yieldNow, Effect.fail("not yet"))
          })
        )
      const stopped = yield* Effect.forkChild(interrupted, { startImmediately: true })
      input.write("\u0003\u0003")
      yield* Fiber.join(stopped)
      assert.isNull(output.read())

      const line = yield* Effect.forkChild(read("> "), { startImmediately: true })
      input.write("not this\u001b[D")
      yield* until("not this")
      written = ""
      input.write("\u0003")
      yield* until("> ")
      assert.notInclude(written, "Ctrl-D")
      input.write("\u0003")
      yield* until("Ctrl-D or /exit ends the chat\n")
      input.write("this\n")
      assert.deepStrictEqual(yield* Fiber.join(line), Option.some("this"))
    })
  )

  it.live("have the line breaks of a pasted text, of Alt-Enter and of a backslash, and end at Enter", () =>
    Effect.gen(function* () {
      const input = new PassThrough()
      const { read } = yield* LineReader.fromTerminal(input, new PassThrough())
      const message = Effect.fnUntraced(function* (...pieces: ReadonlyArray<string>) {
        const line = yield* Effect.forkChild(read("> "), { startImmediately: true })
        for (const piece of pieces) {
          yield* Effect.promise(() => new Promise(setImmediate))
          input.write(piece)
        }
        return Option.getOrUndefined(yield* Fiber.join(line))
      })
      assert.strictEqual(yield* message("\u001b[200~a\r\n\tb\u0003\n\u001b[201~c\r"), "a\n  b\nc")
      assert.strictEqual(yield* message("\u001b[20", "0~a\rb\u001b[2", "01~\r"), "a\nb")
      assert.strictEqual(yield* message("one\u001b\r", "two\r"), "one\ntwo")
      assert.strictEqual(yield* message("one\\\r", "two\r"), "one\ntwo")
    })
  )

  it.live("are completed by Tab to the commands of a chat", () =>
    Effect.gen(function* () {
      const input = new PassThrough()
      const output = new PassThrough({ encoding: "utf8" })
      const { read } = yield* LineReader.fromTerminal(input, output)
      const line = yield* Effect.forkChild(read("> "), { startImmediately: true })
      let written = ""
      const until = (text: string) =>
        Effect.eventually(
          Effect.suspend(() => {
            written += output.read() ?? ""
            return written.includes(text) ? Effect.void : Effect.andThen(Effect.yieldNow, Effect.fail("not yet"))
          })
        )
      input.write("/hi")
      yield* until("/hi")
      input.write("\t")
      yield* until("story")
      input.write("\r")
      assert.deepStrictEqual(yield* Fiber.join(line), Option.some("/history"))
    })
  )

  it.live("are offered again in later chats, except answers to questions", () =>
    Effect.gen(function* () {
      const input = new PassThrough()
      const added: Array<string> = []
      const { ask, read } = yield* LineReader.fromTerminal(input, new PassThrough(), {
        messages: ["of an earlier chat"],
        add: (message) => Effect.sync(() => void added.push(message))
      })
      const typed = Effect.fnUntraced(function* (line: typeof read, keys: string) {
        const reading = yield* Effect.forkChild(line("> "), { startImmediately: true })
        yield* Effect.promise(() => new Promise(setImmediate))
        input.write(keys)
        return Option.getOrUndefined(yield* Fiber.join(reading))
      })
      assert.strictEqual(yield* typed(read, "one\u001b\rtwo\r"), "one\ntwo")
      assert.strictEqual(yield* typed(ask, "y secret\r"), "y secret")
      assert.strictEqual(yield* typed(read, "\u001b[A\r"), "one\ntwo")
      assert.strictEqual(yield* typed(read, "\u001b[A\u001b[A\r"), "of an earlier chat")
      assert.deepStrictEqual(added, ["one↵two", "one↵two", "of an earlier chat"])
    })
  )

  it.live("end when the terminal is closed and cannot be reset", () =>
    Effect.gen(function* () {
      const input = new PassThrough()
      const setRawMode = (isRaw: boolean) => isRaw || input.emit("error", new Error("setRawMode EIO"))
      const { read } = yield* LineReader.fromTerminal(Object.assign(input, { setRawMode }), new PassThrough())
      const line = yield* Effect.forkChild(read("> "), { startImmediately: true })
      input.end()
      assert.deepStrictEqual(yield* Fiber.join(line), Option.none())
    })
  )
})
