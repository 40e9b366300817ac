import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { command } from "../../support/blocks.ts"
import { folder } from "../../support/folder.ts"
import { kernai } from "../support.ts"

/** Runs a script in a store of its own, and returns the id of the run. */
const place = Effect.fnUntraced(function* (...replies: ReadonlyArray<string>) {
  const at = yield* folder
  const script = join(at, "script.json")
  writeFileSync(script, JSON.stringify(replies))
  const runs = (...args: ReadonlyArray<string>) =>
    kernai(["runs", ...args], { env: { KERNAI_STORE: join(at, "a.db") } })
  yield* kernai(["run", "go", "--script", script, "--no-skills"], { env: { KERNAI_STORE: join(at, "a.db") } })
  const id: string = JSON.parse((yield* runs("list", "--json")).out).runId
  return { at, id, runs }
})

describe("kernai runs retry", () => {
  it.live("offers a failed run to workers again", () =>
    Effect.gen(function* () {
      const { id, runs } = yield* place(command("x"))
      assert.match((yield* runs("list")).out, / failed /)
      const { out, progress } = yield* runs("retry", id)
      assert.strictEqual(out, `queued  ${id}\n`)
      assert.include(progress, `kernai runs resume ${id}`)
      assert.match((yield* runs("list")).out, / queued /)
    })
  )

  it.live("refuses a run that has not failed", () =>
    Effect.gen(function* () {
      const { id, runs } = yield* place("Yes.")
      assert.include((yield* runs("retry", id)).error, `the run ${id} has not failed`)
    })
  )

  it.live("frees a run that was given up, which lists and shows call poisoned", () =>
    Effect.gen(function* () {
      const { at, id, runs } = yield* place(command("x"))
      const file = join(at, "run.jsonl")
      yield* runs("export", id, file)
      // The error that a worker stores when it gives a run up.
      const lines = readFileSync(file, "utf8")
        .replaceAll(/"sum":"[^"]*",/g, "")
        .replace(/"tag":"ProviderError","message":"[^"]*"/, '"tag":"RunPoisoned","message":"it crashed 7 times"')
      writeFileSync(file, lines)
      const other = { env: { KERNAI_STORE: join(at, "b.db") } }
      yield* kernai(["runs", "import", file], other)
      assert.match((yield* kernai(["runs", "list", "--status", "poisoned"], other)).out, / poisoned /)
      assert.strictEqual((yield* runs("list", "--status", "poisoned")).out, "")
      assert.include((yield* kernai(["runs", "show", id], other)).out, "poisoned: it crashed 7 times")
      yield* kernai(["runs", "retry", id], other)
      assert.match((yield* kernai(["runs", "list"], other)).out, / queued /)
    })
  )
})
