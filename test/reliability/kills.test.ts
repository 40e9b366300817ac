import { assert, describe, it } from "vitest"
import * as Postgres from "../support/postgres.ts"
import { freezes, kills, stops } from "./real.ts"

// A limit for what hangs: a busy machine takes ten times as long.
const patience = 600_000

describe("real processes on SQLite (R-1 to R-7)", () => {
  it(
    "lose nothing and double nothing when they are killed at any moment",
    async () => {
      const { entered, findings, rounds } = await kills(10)
      assert.deepStrictEqual(findings, [])
      assert.isAbove(entered, 20)
      console.log(`kills: ${rounds}`)
    },
    patience
  )

  it(
    "do nothing more with a run that another took while they were suspended beyond their lease (R-5)",
    async () => {
      const { findings, rounds } = await stops(1)
      assert.deepStrictEqual(findings, [])
      assert.strictEqual(rounds, 1)
    },
    patience
  )

  it(
    "stopped between the launch of a write call and its entry, one wakes to a run that is another's, and does not enter it",
    async () => {
      const { findings, refused } = await freezes(3)
      assert.deepStrictEqual(findings, [])
      assert.strictEqual(refused, 3)
    },
    patience
  )
})

describe.skipIf(!Postgres.available)("real processes on PostgreSQL (R-2, R-5)", () => {
  it(
    "stopped between the launch of a write call and its entry, one wakes to a run that is another's, and does not enter it",
    async () => {
      const { findings, refused } = await freezes(3, { on: "postgres" })
      assert.deepStrictEqual(findings, [])
      assert.strictEqual(refused, 3)
    },
    patience
  )
})
