import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit } from "effect"
import { SqlMediaStore, SqlRunStore } from "kernai/sql"
import { MediaStoreSuite, RunStoreSuite } from "kernai/testing"
import { folder } from "../support/folder.ts"
import * as Media from "../support/mediaStore.ts"
import * as Runs from "../support/runStore.ts"

interface Check<E> {
  readonly name: string
  readonly run: Effect.Effect<void, E>
}

/** The checks that fail, with the reason of each. */
const failures = <E>(checks: ReadonlyArray<Check<E>>) =>
  Effect.map(
    Effect.forEach(checks, ({ name, run }) => Effect.map(Effect.exit(run), (exit) => ({ name, exit }))),
    (all) => all.flatMap(({ exit, name }) => (Exit.isFailure(exit) ? [`${name}: ${Cause.pretty(exit.cause)}`] : []))
  )

describe("the suites for stores", () => {
  it.live(
    "pass twice over one database of run and media stores",
    () =>
      Effect.gen(function* () {
        const filename = `${yield* folder}/kernai.db`
        const runs = RunStoreSuite.checks(Runs.open(SqlRunStore.layerSqlite({ filename, synchronous: "normal" })))
        const media = MediaStoreSuite.checks(
          Media.open(SqlMediaStore.layerSqlite({ filename, synchronous: "normal" })),
          {
            durable: true
          }
        )
        for (const round of ["first", "second"]) {
          assert.deepStrictEqual(yield* failures(runs), [], `${round} time, runs`)
          assert.deepStrictEqual(yield* failures(media), [], `${round} time, media`)
        }
      }),
    120_000
  )
})
