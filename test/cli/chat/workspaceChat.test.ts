import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Reader from "../../../src/cli/chat/lineReader.ts"
import { chat } from "../../../src/cli/chat/terminalChat.ts"
import type { ChatFlags } from "../../../src/cli/commands/chatFlags.ts"
import { program } from "../../../src/cli/rootCommand.ts"
import { folder } from "../../support/folder.ts"
import { chatFlags, memoryScreen } from "../support.ts"

const call = (name: string, input: { readonly [key: string]: unknown }) => ({ calls: [{ name, input }] })

const edit = (from: string, to: string) => call("edit", { file_path: "a.js", old_string: from, new_string: to })

/** Chats in a folder with one file, `a.js`. */
const work = Effect.fnUntraced(function* (
  place: string,
  script: ReadonlyArray<unknown>,
  typed: ReadonlyArray<string>,
  options: Partial<ChatFlags> = {}
) {
  writeFileSync(join(place, "script.json"), JSON.stringify(script))
  const screen = memoryScreen()
  const left = [...typed]
  const next = () => Effect.sync(() => Option.fromUndefinedOr(left.shift()))
  const flags = {
    ...chatFlags,
    store: join(place, "chat.db"),
    script: join(place, "script.json"),
    workspace: join(place, "work"),
    dialect: "tools" as const,
    ...options
  }
  yield* chat(flags).pipe(
    Effect.provideService(Reader.LineReader, { read: next, ask: next, interrupted: Effect.never, isTerminal: true }),
    Effect.provide([screen.layer, NodeServices.layer])
  )
  return { out: screen.out(), progress: screen.progress(), left }
})

const place = Effect.map(folder, (path) => {
  mkdirSync(join(path, "work"))
  writeFileSync(join(path, "work", "a.js"), "export const three = 1 + 1\n")
  return path
})

const fileOf = (place: string, name = "a.js") => readFileSync(join(place, "work", name), "utf8")

describe("kernai chat --workspace", () => {
  it.live("edits files, shows the difference and the todo list, and takes a message back", () =>
    Effect.gen(function* () {
      const where = yield* place
      const todos = [{ content: "repair", status: "in_progress" }]
      const script = [call("todo", { todos }), edit("1 + 1", "1 + 2"), "Repaired."]
      const first = yield* work(where, script, ["three is wrong"])
      assert.strictEqual(first.out, "Repaired.\n")
      assert.strictEqual(fileOf(where), "export const three = 1 + 2\n")
      assert.include(first.progress, "    [>] repair\n")
      assert.match(first.progress, /skill +edit +[^{\n]*Edited a\.js in 1 place/)
      assert.include(first.progress, "    -export const three = 1 + 1\n    +export const three = 1 + 2\n")
      const second = yield* work(where, script, ["/undo", "/undo"])
      assert.include(second.progress, "taken back: a.js\nno file was changed\n")
      assert.strictEqual(fileOf(where), "export const three = 1 + 1\n")
    }).pipe(Effect.scoped)
  )

  it.live("asks before commands, and remembers the prefix that the person always allows, where there is one", () =>
    Effect.gen(function* () {
      const where = yield* place
      const run = (command: string) => call("shell", { command })
      const script = [run("mkdir -p one"), run("mkdir -p two"), run("mkdir -p three > log"), run("rm a.js"), "Done."]
      const { left, out, progress } = yield* work(where, script, ["go", "a", "a", "y", "n not that"])
      assert.deepStrictEqual([out, left], ["Done.\n", []])
      assert.include(progress, "[a]lways for mkdir\n")
      assert.isTrue(existsSync(join(where, "work", "two")))
      assert.isTrue(existsSync(join(where, "work", "a.js")))
    }).pipe(Effect.scoped)
  )

  it.live("changes nothing in plan mode, and carries the plan out in work mode", () =>
    Effect.gen(function* () {
      const where = yield* place
      const script = [edit("1 + 1", "broken"), "1. Repair a.js", edit("1 + 1", "1 + 2"), "Repaired."]
      const { out, progress } = yield* work(where, script, ["three is wrong", "/work"], { plan: true })
      assert.strictEqual(out, "1. Repair a.js\nRepaired.\n")
      assert.include(progress, "! does not run: nothing is changed in plan mode")
      assert.strictEqual(fileOf(where), "export const three = 1 + 2\n")
    }).pipe(Effect.scoped)
  )

  it.live("is taken back by kernai runs undo", () =>
    Effect.gen(function* () {
      const where = yield* place
      yield* work(where, [edit("1 + 1", "1 + 2"), "Repaired."], ["three is wrong"])
      const screen = memoryScreen()
      yield* Effect.provide(program(["runs", "undo", "default-1", "--store", join(where, "chat.db")]), screen.layer)
      assert.strictEqual(screen.out(), "taken back: a.js\n")
      assert.strictEqual(fileOf(where), "export const three = 1 + 1\n")
    }).pipe(Effect.scoped)
  )
})
