/** What the overview and the list of runs cost the server over a million runs. */
import { Context, Effect, Layer } from "effect"
import { DatabaseSync } from "node:sqlite"
import { RunStore } from "../src/index.ts"
import { SqlRunStore } from "../src/sql/index.ts"
import { fill } from "./filledStore.ts"
import { atMost, inFolder, type Line } from "./support.ts"

const runs = 1_000_000
/** A month. */
const range = { from: 0, to: 30 * 86_400_000, slots: 48 }

const names = (name: string, count: number) => Array.from({ length: count }, (_, at) => `${name}${at}`)

/** Returns the median of the CPU milliseconds of a few runs of an effect, and its last result. */
const measured = <A, E>(effect: Effect.Effect<A, E>) =>
  Effect.gen(function* () {
    const spent: Array<number> = []
    let last = yield* effect
    for (let round = 0; round < 5; round++) {
      const before = process.cpuUsage()
      last = yield* effect
      const { system, user } = process.cpuUsage(before)
      spent.push((user + system) / 1_000)
    }
    return { last, milliseconds: Math.round(spent.toSorted((a, b) => a - b)[2] ?? Infinity) }
  })

/** Waits until the texts are indexed that fill blocks of the search index, which the first search begins. */
const indexed = (filename: string, list: RunStore.RunStoreShape["list"]) =>
  Effect.gen(function* () {
    yield* list({ search: "nowhere", limit: 1 })
    const db = new DatabaseSync(filename)
    const unindexed = db.prepare("SELECT count(*) AS count FROM kernai_unindexed")
    while (Number(unindexed.get()?.["count"]) > 4000) yield* Effect.sleep("1 second")
    db.close()
  })

const line = (what: string, milliseconds: number, most: number, isRight: boolean): Line => {
  const found = atMost(`CPU milliseconds of ${what} with 1,000,000 runs`, milliseconds, most)
  return { ...found, pass: found.pass && isRight }
}

const lines = (filename: string) =>
  Effect.gen(function* () {
    const context = yield* Layer.build(SqlRunStore.layerSqlite(filename))
    const { counts, list, spending, tags } = Context.get(context, RunStore.RunStore)
    if (counts === undefined || spending === undefined || tags === undefined) return []
    fill(filename, { ...range, runs, swing: 0, agents: names("agent", 5), models: names("vendor/model", 3) })
    const overview = yield* measured(Effect.all([counts(range), spending(range)]))
    const [counted, spent] = overview.last
    const all = counted.reduce((sum, { count }) => sum + count, 0)
    const priced = spent.reduce((sum, one) => sum + one.runs, 0)
    const page = yield* measured(list({ roots: true, limit: 100 }))
    const failed = yield* measured(list({ roots: true, limit: 100, status: ["failed"], agent: "agent0" }))
    const ofModel = yield* measured(list({ roots: true, limit: 100, model: "vendor/model1" }))
    yield* tags.add(
      "urgent",
      Array.from({ length: 10_000 }, (_, at) => `filled_${at * 100}`)
    )
    const tagged = yield* measured(list({ roots: true, limit: 100, tag: "urgent" }))
    yield* indexed(filename, list)
    const frequent = yield* measured(list({ roots: true, limit: 100, search: "fibers invoice" }))
    const rare = yield* measured(list({ roots: true, limit: 100, search: "invoice 777777" }))
    const half = yield* measured(list({ roots: true, limit: 100, search: "voice 77777" }))
    const none = yield* measured(list({ roots: true, limit: 100, search: "fibers nowhere" }))
    return [
      line("the overview of a month", overview.milliseconds, 300, all === runs && priced === runs),
      line("a page of the list", page.milliseconds, 100, page.last.length === 100),
      line("a page of one agent's failed runs", failed.milliseconds, 100, failed.last.length === 100),
      line("a page of one model's runs", ofModel.milliseconds, 100, ofModel.last.length === 100),
      line("a page of 10,000 tagged runs", tagged.milliseconds, 100, tagged.last.length === 100),
      line("a search for frequent words", frequent.milliseconds, 200, frequent.last.length === 100),
      line("a search for a rare word", rare.milliseconds, 200, rare.last.length === 1),
      line("a search for half a word", half.milliseconds, 200, half.last.length === 19),
      line("a search for a word of no run", none.milliseconds, 200, none.last.length === 0)
    ]
  }).pipe(Effect.scoped)

export const countLines = (): Promise<ReadonlyArray<Line>> =>
  inFolder((folder) => Effect.runPromise(lines(`${folder}/runs.db`)))
