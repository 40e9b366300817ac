/**
 * The command line as a process: slow, so there are only a few tests.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { existsSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { folder } from "../support/folder.ts"
import { quickly } from "../support/longRun.ts"
import { serve } from "../support/loopback.ts"
import { call, kernai, start } from "./support.ts"

describe("kernai", () => {
  it.live("plays the recorded conversation to its answer, without a key, and without colours in a pipe", () =>
    Effect.gen(function* () {
      const { code, error, out } = yield* call(["run"])
      assert.strictEqual(code, 0)
      assert.notInclude(error + out, "\u001b")
      // Progress is no part of the answer.
      assert.match(error, /^ {2}skill {5}user_database {2}.+ ms/m)
      assert.match(out, /^Based on [^]*Therefore, 50% of active users are on the premium plan\.\n$/)
    })
  )

  it.live("runs in a clone with skill files that import kernai", () =>
    Effect.gen(function* () {
      const skills = fileURLToPath(new URL("../fixtures/skillFiles", import.meta.url))
      const place = yield* folder
      const script = join(place, "script.json")
      const given = ["--script", script, "--store", `sqlite:${join(place, "runs.db")}`, "--skills-from", skills]
      const greet = '<block type="command" name="greet">{"name": "Ada"}</block>'
      writeFileSync(script, JSON.stringify([greet, '<block type="final">done</block>']))
      const { code, error, out } = yield* call(["run", "--create", "Greet Ada", ...given])
      assert.strictEqual(code, 0, error)
      assert.match(error, /^ {2}skill {5}greet {2}.+ ms/m)
      assert.strictEqual(out, "done\n")
    })
  )

  it.live("names the missing variable and the command that needs no key, in one line", () =>
    Effect.gen(function* () {
      const { code, error, out } = yield* kernai(["run", "--model", "anthropic/claude-sonnet-4-20250514", "Hello?"])
      assert.strictEqual(code, 2)
      assert.strictEqual(out, "")
      assert.strictEqual(error.trimEnd().split("\n").length, 1)
      assert.include(error, "ANTHROPIC_API_KEY is not set")
      assert.include(error, "'kernai run'")
    })
  )

  it.live("reports a mistake on the command line in two lines, with exit code 2", () =>
    Effect.gen(function* () {
      const { code, error, out } = yield* kernai(["run", "--colour"])
      assert.strictEqual(code, 2)
      assert.strictEqual(out, "")
      assert.match(error, /^kernai: .*--colour.*\n {2}kernai run --help\n$/)
    })
  )

  it.live("completes commands and flags in the shell", () =>
    Effect.gen(function* () {
      const { code, out } = yield* call(["--completions", "bash"])
      assert.strictEqual(code, 0)
      for (const word of ["run", "doctor", "--model", "--replay"]) assert.include(out, word)
    })
  )

  it.live("shows which keys are set, and never a key", () =>
    Effect.gen(function* () {
      const { code, out } = yield* kernai(["doctor", "--json"], { env: { OPENAI_API_KEY: "sk-SECRET-0123456789" } })
      assert.strictEqual(code, 0)
      assert.notInclude(out, "SECRET")
      const findings: ReadonlyArray<{ readonly name: string; readonly state: string }> = JSON.parse(out)
      const state = (name: string) => findings.find((finding) => finding.name === name)?.state
      assert.deepStrictEqual([state("openai"), state("anthropic")], ["ok", "missing"])
    })
  )

  it.live.skipIf(!existsSync("/dev/full"))("reports in one line that its output cannot be written", () =>
    Effect.gen(function* () {
      for (const args of quickly([["run", "--list"], ["--help"]], ([word]) => word === "run")) {
        const { code, error } = yield* call(args, { output: "/dev/full" })
        assert.strictEqual(code, 1)
        assert.strictEqual(error, "kernai: the output cannot be written (ENOSPC)\n")
      }
    })
  )

  it.live("ends a run and its connection at Ctrl-C, and reports it", () =>
    Effect.gen(function* () {
      const asked = Promise.withResolvers<void>()
      const closed = Promise.withResolvers<void>()
      const server = yield* serve((_, response) => {
        response.on("close", closed.resolve)
        asked.resolve()
      })
      const env = { ANTHROPIC_API_KEY: "k", ANTHROPIC_BASE_URL: server.url() }
      const run = yield* start(["run", "--model", "anthropic/claude-sonnet-4-20250514", "Hello?"], { env })
      yield* Effect.promise(() => asked.promise)
      run.kill("SIGINT")
      const { code, error } = yield* run.ended
      assert.strictEqual(code, 130)
      assert.match(error, /\nkernai: interrupted\n$/)
      yield* Effect.promise(() => closed.promise)
    })
  )
})
