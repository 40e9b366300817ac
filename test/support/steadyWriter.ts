/** A process that stores one run after the other in a SQLite file, and prints the number of each that is stored. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as RunStore from "../../src/RunStore.ts"
import * as SqlRunStore from "../../src/sql/SqlRunStore.ts"
import * as Journal from "../../src/testing/internal/sampleJournal.ts"

const [filename = ""] = process.argv.slice(2)

const writing = Effect.gen(function* () {
  const store = yield* RunStore.RunStore
  for (let number = 0; ; number++) {
    const run = Journal.begin(`run ${number}`)
    yield* Journal.putAll(store, [run.last(), ...Journal.turn(run)])
    process.stdout.write(`${number}\n`)
    yield* Effect.sleep(20)
  }
})

await Effect.runPromise(
  Effect.provide(writing, Layer.orDie(SqlRunStore.layerSqlite({ filename, synchronous: "normal" })))
)
