import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { lstatSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as InputHistory from "../../../src/cli/chat/inputHistory.ts"
import { folder } from "../../support/folder.ts"

describe("the history of typed messages", () => {
  it.effect("is kept for later chats in a file that only its owner can read", () =>
    Effect.gen(function* () {
      const file = join(yield* folder, "kernai", "chat-history")
      const first = yield* InputHistory.open(file, [])
      assert.deepStrictEqual(first.messages, [])
      for (const message of ["one", "two", "one"]) yield* first.add(message)
      assert.strictEqual(statSync(file).mode & 0o777, 0o600)
      assert.strictEqual(statSync(join(file, "..")).mode & 0o777, 0o700)
      assert.deepStrictEqual((yield* InputHistory.open(file, [])).messages, ["one", "two"])
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.effect("never has a secret that the program knows, or a text that looks like a key", () =>
    Effect.gen(function* () {
      const file = join(yield* folder, "chat-history")
      const { add } = yield* InputHistory.open(file, [Redacted.make("correct horse")])
      yield* add("a plain message")
      yield* add("the password is Correct Horse")
      yield* add(`use sk-ant-api03-${"x1".repeat(20)} please`)
      assert.strictEqual(readFileSync(file, "utf8"), "a plain message\n")
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.effect("has the last 500 messages, and none that is long or would move the cursor", () =>
    Effect.gen(function* () {
      const file = join(yield* folder, "chat-history")
      const old = Array.from({ length: 600 }, (_, index) => `message ${index}`)
      writeFileSync(file, [...old, "\u001b[2Jgone", ""].join("\n"))
      const { add } = yield* InputHistory.open(file, [])
      yield* add("x".repeat(2_001))
      yield* add("the last")
      const { messages } = yield* InputHistory.open(file, [])
      assert.deepStrictEqual([messages.length, messages[0], messages.at(-1)], [500, "the last", "message 101"])
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.effect("leaves a file alone that it cannot read, such as a link to nothing that switches it off", () =>
    Effect.gen(function* () {
      const file = join(yield* folder, "chat-history")
      symlinkSync("/dev/null", file)
      const history = yield* InputHistory.open(file, [])
      yield* history.add("a message")
      assert.deepStrictEqual(history.messages, [])
      assert.isTrue(lstatSync(file).isSymbolicLink())
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it("stands where the platform keeps the data of programs", () => {
    const { fileOf } = InputHistory
    assert.strictEqual(fileOf("linux", "/home/ada", {}), "/home/ada/.local/state/kernai/chat-history")
    assert.strictEqual(fileOf("linux", "/home/ada", { state: "/state" }), "/state/kernai/chat-history")
    assert.strictEqual(fileOf("linux", "/home/ada", { state: "state" }), "/home/ada/.local/state/kernai/chat-history")
    assert.strictEqual(fileOf("darwin", "/Users/ada", {}), "/Users/ada/Library/Application Support/kernai/chat-history")
    assert.strictEqual(fileOf("win32", "C:\\Users\\ada", { local: "D:\\Local" }), "D:\\Local\\kernai\\chat-history")
  })
})
