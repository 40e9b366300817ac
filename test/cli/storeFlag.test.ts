import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Result } from "effect"
import { existsSync, readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { chat } from "../../src/cli/chat/terminalChat.ts"
import { LineReader } from "../../src/cli/chat/lineReader.ts"
import { CommandFailed } from "../../src/cli/exit.ts"
import { folder } from "../support/folder.ts"
import { chatFlags, kernai, memoryScreen } from "./support.ts"

const place = Effect.map(folder, (folder) => {
  writeFileSync(join(folder, "script.json"), JSON.stringify(["First.", "Second."]))
  return folder
})

/** Sends one message in a chat that is stored there. */
const say = Effect.fn("say")(function* (folder: string, store: string, text: string) {
  const screen = memoryScreen()
  const left = [text]
  const result = yield* chat({ ...chatFlags, store, script: join(folder, "script.json"), skills: false }).pipe(
    Effect.result,
    Effect.provideService(LineReader, {
      read: () => Effect.sync(() => Option.fromUndefinedOr(left.shift())),
      ask: () => Effect.succeedNone,
      interrupted: Effect.never,
      isTerminal: true
    }),
    Effect.provide([screen.layer, NodeServices.layer])
  )
  return Result.isFailure(result) ? result.failure : screen.out()
})

describe("the store of a chat", () => {
  it.live("is named like a store of runs, or by the path of a SQLite file", () =>
    Effect.gen(function* () {
      const folder = yield* place
      const stores = { plain: join(folder, "plain.db"), sqlite: `sqlite:${join(folder, "sqlite.db")}` }
      for (const store of [stores.plain, stores.sqlite, `file:${join(folder, "files")}`]) {
        assert.strictEqual(yield* say(folder, store, "one"), "First.\n", store)
        assert.strictEqual(yield* say(folder, store, "two"), "Second.\n", store)
        const listed = yield* kernai(["runs", "list", "--store", store === stores.plain ? `sqlite:${store}` : store])
        assert.strictEqual(listed.out.trimEnd().split("\n").length, 2, store)
      }
      assert.includeMembers(readdirSync(folder), ["plain.db", "sqlite.db", "files"])
    })
  )

  it.live("is refused when its kind is unknown, instead of creating a file with that name", () =>
    Effect.gen(function* () {
      const folder = yield* place
      const failure = yield* say(folder, "redis://localhost", "one")
      assert.instanceOf(failure, CommandFailed)
      assert.include(failure instanceof CommandFailed ? failure.message : "", "sqlite:FILE, file:FOLDER or pg:URL")
      assert.isFalse(existsSync("redis:"))
    })
  )
})

describe("kernai run --store", () => {
  it.live("stores a recorded conversation too, and creates the store", () =>
    Effect.gen(function* () {
      const store = ["--store", `sqlite:${join(yield* folder, "new", "runs.db")}`]
      const ran = yield* kernai(["run", ...store])
      assert.deepInclude(ran, { code: 0, error: "" })
      const runId = /^run {7}(run_\w+)$/m.exec(ran.progress)?.[1] ?? ""
      const shown = yield* kernai(["runs", "show", runId, ...store])
      assert.match(shown.out, /^status {4}completed/m)
    })
  )
})

describe("kernai runs replay", () => {
  it.live("asks for the flags of the run when the replay differs", () =>
    Effect.gen(function* () {
      const folder = yield* place
      const store = ["--store", `sqlite:${join(folder, "runs.db")}`]
      const ran = yield* kernai([
        "run",
        "Hello",
        ...store,
        "--script",
        join(folder, "script.json"),
        "--no-skills",
        "--system",
        "You greet.",
        "--json"
      ])
      const id: string = JSON.parse(ran.out).runId
      const replayed = yield* kernai(["runs", "replay", id, ...store, "--no-skills"])
      assert.strictEqual(replayed.code, 1)
      assert.include(replayed.error, "was it run with other flags, such as --system or --skills-from?")
      const same = yield* kernai(["runs", "replay", id, ...store, "--no-skills", "--system", "You greet."])
      assert.include(same.out, "the same again")
    })
  )
})
