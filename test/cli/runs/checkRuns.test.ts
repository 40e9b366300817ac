import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { command } from "../../support/blocks.ts"
import { folder } from "../../support/folder.ts"
import { kernai } from "../support.ts"

const skills = fileURLToPath(new URL("../../fixtures/paySkills", import.meta.url))

describe("kernai runs check", () => {
  it.live("lists the approvals that other skills could not run, and ends with 1", () =>
    Effect.gen(function* () {
      const at = yield* folder
      const script = join(at, "script.json")
      writeFileSync(script, JSON.stringify([command("pay", { amount: 5 })]))
      const env = { env: { KERNAI_STORE: join(at, "a.db") } }
      yield* kernai(["run", "Pay 5", "--script", script, "--skills-from", skills], env)
      const same = yield* kernai(["runs", "check", "--skills-from", skills], env)
      assert.deepStrictEqual([same.code, same.out, same.error], [0, "", ""])
      assert.include(same.progress, "1 unfinished run of agent: nothing would break")
      const other = yield* kernai(["runs", "check", "--no-skills"], env)
      assert.strictEqual(other.code, 1)
      assert.match(other.out, /^approval +run_\S+ +pay \(\S+\): Skill 'pay' not found/)
      assert.include(other.error, "1 call or run would break")
      const lines = yield* kernai(["runs", "check", "--no-skills", "--json"], env)
      assert.deepInclude(JSON.parse(lines.out), { reason: "approval", name: "pay", version: null })
    })
  )
})
