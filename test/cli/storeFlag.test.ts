import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Option, Result } from "effect"
import { existsSync, readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { chat } from "../../src/cli/chat/terminalChat.ts"
import { LineReader } from "../../src/cli/chat/lineReader.ts"
import { CommandFailed } from "../../src/cli/exit.ts"
import * as Store from "../../src/cli/storeFlag.ts"
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
        const listed = yield* kernai(["runs", "list"], { env: { KERNAI_STORE: store } })
        assert.strictEqual(listed.out.trimEnd().split("\n").length, 3, store)
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
      const ran = yield* kernai(["run", "--create", ...store])
      assert.deepInclude(ran, { code: 0, error: "" })
      const runId = /^run {7}(run_\w+)$/m.exec(ran.progress)?.[1] ?? ""
      const shown = yield* kernai(["runs", "show", runId, ...store])
      assert.match(shown.out, /^status {4}completed/m)
    })
  )
})

describe("a store that does not exist", () => {
  const missing = "misspelt.db"
  const commands: ReadonlyArray<ReadonlyArray<string>> = [
    ["run"],
    ["run", "Hello", "--detach"],
    ["run", "Hello", "--script", "examples/chat.json"],
    ["chat", "--script", "examples/chat.json"],
    ["dev", "examples/chat.ts"],
    ["worker", "--once", "--script", "examples/chat.json"],
    ["studio"],
    ["acp", "--script", "examples/chat.json"],
    ["scenario", "run", "examples/scenarios/01-triage.ts", "--no-logs"],
    ["scenario", "matrix", "examples/scenarios/01-triage.ts"]
  ]

  for (const words of commands) {
    it.live(`is refused by 'kernai ${words.join(" ")}' unless --create is given`, () =>
      Effect.gen(function* () {
        const { code, error } = yield* kernai([...words, "--store", missing])
        assert.deepStrictEqual(
          { code, error },
          {
            code: 2,
            error: `kernai: there is no store at ${missing}; --create creates it\n`
          }
        )
        assert.isFalse(existsSync(missing))
      })
    )
  }

  it.live("is created if the environment or the command names it, and not --store", () =>
    Effect.gen(function* () {
      const folder = yield* place
      const file = join(folder, "new", "runs.db")
      assert.strictEqual((yield* kernai(["run", "--quiet"], { env: { KERNAI_STORE: file } })).code, 0)
      assert.isTrue(existsSync(file))
      assert.strictEqual((yield* kernai(["run", "--quiet", "--store", file])).code, 0)
      const usual = Store.openNamed({ store: ".kernai/none/chat.db", create: false })
      assert.isTrue(Result.isSuccess(yield* Effect.result(Effect.provide(usual, NodeServices.layer))))
    })
  )
})

describe("kernai runs replay", () => {
  it.live("replays with the flags of the run, and suggests that other flags may be the difference", () =>
    Effect.gen(function* () {
      const folder = yield* place
      const store = ["--store", join(folder, "runs.db")]
      const agent = ["--script", join(folder, "script.json"), "--no-skills", "--system", "You greet."]
      const ran = yield* kernai(["run", "--create", "Hello", ...store, ...agent, "--json"])
      const id: string = JSON.parse(ran.out).runId
      const same = yield* kernai(["runs", "replay", id, ...store])
      assert.include(same.out, "no difference: ")
      const replayed = yield* kernai(["runs", "replay", id, ...store, "--system", "You sing."])
      assert.strictEqual(replayed.code, 1)
      assert.include(replayed.error, "was it run with other flags, such as --system or --skills-from?")
    })
  )
})

describe("a command to paste", () => {
  const command = (words: ReadonlyArray<string>, store: string, env: { readonly [name: string]: string } = {}) =>
    Effect.provide(Store.command(words, store), ConfigProvider.layer(ConfigProvider.fromEnv({ env })))

  it.effect("names the store, unless the environment does", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* command(["runs", "list"], "runs.db"), "kernai runs list --store runs.db")
      assert.strictEqual(yield* command(["runs", "list"], "runs.db", { KERNAI_STORE: "runs.db" }), "kernai runs list")
    })
  )

  it.effect("is quoted for a shell, and never holds the password of a store", () =>
    Effect.gen(function* () {
      assert.strictEqual(
        yield* command(["runs", "show", "it's"], "my runs.db"),
        String.raw`kernai runs show 'it'\''s' --store 'my runs.db'`
      )
      for (const url of ["postgres://me:SECRET@host/db?password=SECRET", "me:SECRET@host"]) {
        assert.notInclude(yield* command(["runs", "list"], `pg:${url}`), "SECRET")
      }
      const local = yield* command(["runs", "list"], "pg:postgres://me:SECRET@host/db")
      assert.strictEqual(local, "kernai runs list --store pg:postgres://me@host/db")
    })
  )
})
