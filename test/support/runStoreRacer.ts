/**
 * A worker that pushes the run `race` on until it has sixty records, and prints the revisions that were its own.
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as RunStore from "../../src/RunStore.ts"
import * as FileRunStore from "../../src/file/FileRunStore.ts"
import * as SqlRunStore from "../../src/sql/SqlRunStore.ts"
import * as Journal from "../../src/testing/internal/sampleJournal.ts"

export type Kind = "file" | "sqlite"

/** The store of a kind in a directory. */
export const layerOf = (kind: Kind, directory: string): Layer.Layer<RunStore.RunStore, RunStore.StoreError> =>
  kind === "file"
    ? Layer.provide(FileRunStore.layer(directory), NodeFileSystem.layer)
    : SqlRunStore.layerSqlite({ filename: `${directory}/runs.db`, synchronous: "normal" })

const push = Effect.fnUntraced(function* (workerId: string) {
  const store = yield* RunStore.RunStore
  const own: Array<number> = []
  for (;;) {
    const revision = Option.match(yield* store.head("race"), { onNone: () => 0, onSome: (head) => head.revision })
    if (revision >= 60) return own
    // What a worker decides does not matter here, only whether it may.
    const run = Journal.begin("race", { workerId })
    while (run.last().record.revision <= revision) run.commit("resume", [], { resumed: true })
    const { record, state } = revision === 0 ? Journal.begin("race", { workerId }).last() : run.last()
    const exit = yield* Effect.result(store.append([record], state))
    if (exit._tag === "Success") own.push(record.revision)
    else if (exit.failure._tag === "StoreError") return yield* exit.failure
    else yield* Effect.yieldNow
  }
})

const [kind, directory = "", workerId = ""] = process.argv.slice(2)
if (import.meta.filename === process.argv[1] && (kind === "file" || kind === "sqlite")) {
  const main = Effect.map(push(workerId), (own) => process.stdout.write(JSON.stringify(own)))
  await Effect.runPromise(Effect.provide(main, layerOf(kind, directory)))
}
