import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { RunCodec } from "kernai"
import { SqliteClient } from "kernai/sql"
import * as Tables from "../../src/sql/internal/runTables.ts"
import * as SqliteAppend from "../../src/sql/internal/sqliteAppend.ts"
import { folder } from "../support/folder.ts"

describe("a chunk of earlier messages that another process removes while a run is stored", () => {
  it.effect("refuses the run on SQLite, which is then stored with all of its chunks", () =>
    Effect.gen(function* () {
      const client = SqliteClient.layer({ filename: `${yield* folder}/runs.db` })
      const sql = Context.get(yield* Layer.build(client), SqlClient.SqlClient)
      yield* Tables.prepare(sql)
      const chunk = { id: "one", before: null, messages: 4, body: "{}" }
      const row = (chunks: ReadonlyArray<Tables.ChunkRow>): Tables.Row => ({
        id: "run",
        first: 1,
        records: 1,
        body: "{}",
        turns: 0,
        detail: "run_started",
        at: 1,
        status: "running",
        due_at: null,
        format: RunCodec.format,
        origin: {
          root: "run",
          parent: null,
          agent: "agent",
          caller: null,
          tenant: null,
          labels: [],
          facts: "{}",
          created_at: 1,
          history: "one",
          chunks
        }
      })
      const error = yield* Effect.flip(SqliteAppend.append(sql, row([])))
      assert.strictEqual(error.reason._tag, "ConstraintError")
      const later = { id: "two", before: "one", messages: 8, body: "{}" }
      assert.strictEqual((yield* Effect.flip(SqliteAppend.append(sql, row([later])))).reason._tag, "ConstraintError")
      assert.deepStrictEqual(yield* sql`SELECT id FROM kernai_runs`, [])
      assert.isTrue(yield* SqliteAppend.append(sql, row([chunk])))
    })
  )
})
