import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { RunStore } from "kernai"
import { SqlRunStore } from "kernai/sql"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { command, final } from "../../support/blocks.ts"
import { folder } from "../../support/folder.ts"
import { kernai } from "../support.ts"

const skills = fileURLToPath(new URL("../../fixtures/paySkills", import.meta.url))

describe("kernai ops", () => {
  it.live("counts the runs that need somebody, by what they need", () =>
    Effect.gen(function* () {
      const at = yield* folder
      const script = join(at, "script.json")
      const env = { env: { KERNAI_STORE: join(at, "a.db") } }
      const run = (...replies: ReadonlyArray<string>) => {
        writeFileSync(script, JSON.stringify(replies))
        return kernai(["run", "go", "--script", script, "--skills-from", skills], env)
      }
      yield* run(final("Done."))
      assert.include((yield* kernai(["ops"], env)).progress, "no run needs anybody")
      yield* run(command("pay", { amount: 5 }))
      yield* run(command("pay", { amount: 6 }))
      yield* run(command("gone"))
      const { out } = yield* kernai(["ops", "--json"], env)
      const groups = out
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line))
      assert.deepStrictEqual(
        groups.map(({ need, reason, runs }) => [need, reason, runs]),
        [
          ["waiting", "approval_required", 2],
          ["failed", undefined, 1]
        ]
      )
      assert.match((yield* kernai(["ops"], env)).out, /waiting +2 +agent +run_\S+ +\d+ s +an approval/)
      assert.notInclude((yield* kernai(["ops", "--need", "failed"], env)).out, "waiting")
      assert.include((yield* kernai(["ops", "--agent-name", "other"], env)).progress, "no run needs anybody")
      assert.strictEqual((yield* kernai(["ops", "--retry"], env)).code, 2)
      assert.match((yield* kernai(["ops", "--retry", "--need", "failed"], env)).out, /^queued {2}run_\S+\n$/)
      assert.strictEqual((yield* kernai(["ops", "--retry", "--need", "waiting"], env)).out, "")
    })
  )

  it.live("shows runs whose agent no runner has as unplaced, with the reason", () =>
    Effect.gen(function* () {
      const file = join(yield* folder, "a.db")
      const env = { env: { KERNAI_STORE: file } }
      const runId = (yield* kernai(["run", "go", "--detach"], env)).out.trim()
      assert.include((yield* kernai(["ops"], env)).progress, "no run needs anybody")
      yield* RunStore.RunStore.use((store) =>
        store.acquire(runId, { workerId: RunStore.unplaced("clerk"), lease: 0 })
      ).pipe(Effect.provide(SqlRunStore.layerSqlite(file)))
      assert.match((yield* kernai(["ops"], env)).out, /unplaced +1 .*no runner has agent clerk/)
      assert.match((yield* kernai(["runs", "list"], env)).out, /run_\S+ +unplaced/)
      assert.include((yield* kernai(["runs", "show", runId], env)).out, "no runner has agent clerk")
    })
  )
})
