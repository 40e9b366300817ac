import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import * as Postgres from "../../support/postgres.ts"
import { chaos } from "./chaos.ts"
import { planted } from "./planted.ts"

// A limit for what hangs: a busy machine takes several times as long.
const patience = 600_000

describe.skipIf(!Postgres.available)("chaos on PostgreSQL", () => {
  for (const kind of ["workers", "cluster"] as const) {
    it(
      `loses, doubles and blocks no run of ${kind}, and fails only those that kill their process`,
      async () => {
        const evidence = join(tmpdir(), `kernai-chaos-${kind}-${Date.now()}`)
        const { findings, runs } = await chaos({ kind, minutes: 0.5, evidence })
        assert.deepStrictEqual(findings, [], `evidence in ${evidence}`)
        assert.isAbove(runs, 20)
        console.log(`chaos: ${runs}`)
      },
      patience
    )
  }

  for (const { name, rule } of planted) {
    it(
      `is able to fail: it finds processes of which each ${name}`,
      async () => {
        const { faults, findings } = await chaos({ kind: "workers", minutes: 0.5, planted: name })
        const found = findings.map((finding) => finding.split(":")[0])
        assert.include(found, rule, `after ${JSON.stringify(faults)}`)
      },
      patience
    )
  }
})
