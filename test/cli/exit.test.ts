import { assert, describe, it } from "@effect/vitest"
import { Cause, Exit } from "effect"
import { CliError } from "effect/cli"
import { readFileSync } from "node:fs"
import { codeOf, Codes, CommandFailed, help, usage } from "../../src/cli/exit.ts"

describe("the exit code", () => {
  const usageError = new CliError.UnrecognizedOption({ option: "--x", suggestions: [] })
  const ends: ReadonlyArray<readonly [end: string, exit: Exit.Exit<unknown, unknown>, code: number]> = [
    ["an answer", Exit.succeed("answer"), 0],
    ["a run that failed", Exit.fail(new CommandFailed({ code: 1, reason: "no" })), 1],
    ["a defect", Exit.die(new Error("boom")), 1],
    ["a failure that is a text", Exit.fail("no"), 1],
    ["a failure that is nothing", Exit.fail(null), 1],
    ["nothing that was run", Exit.fail(usage("no")), 2],
    ["a mistake on the command line", Exit.fail(new CliError.ShowHelp({ commandPath: [], errors: [usageError] })), 2],
    ["help", Exit.fail(new CliError.ShowHelp({ commandPath: [], errors: [] })), 0],
    ["a run that waits", Exit.fail(new CommandFailed({ code: 3, reason: "asks" })), 3],
    ["an interrupt", Exit.failCause(Cause.interrupt(1)), 130]
  ]
  it.each(ends)("of %s is the documented one", (_, exit, code) => {
    assert.strictEqual(codeOf(exit), code)
  })

  it("is listed in the documentation", () => {
    const page = readFileSync(new URL("../../docs/command-line.md", import.meta.url), "utf8")
    const rows = [...page.matchAll(/^\| (\d+) \| /gm)].map(([, code]) => Number(code))
    assert.deepStrictEqual(rows, Object.values(Codes))
  })

  it("is listed in the help", () => {
    assert.deepStrictEqual((help.match(/\d+/g) ?? []).map(Number), Object.values(Codes))
  })
})
