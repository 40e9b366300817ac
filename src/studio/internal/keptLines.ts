/**
 * Files in the folder of evaluations to which people add lines of JSON: rows of data sets, taken from runs, and scores
 * of runs. `kernai eval` reads a data set as it is.
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import { appendFile, mkdir, readdir, readFile, stat } from "node:fs/promises"
import { join } from "node:path"
import { Invalid } from "../../http/HttpProblem.ts"
import { numberedLines } from "../../kit/text.ts"

const words = (most: number) => Schema.String.check(Schema.isMaxLength(most))
const setName = Schema.String.check(Schema.isPattern(/^[\w-]{1,60}$/))
const runId = words(1_000)

/** A question of a data set, with the answer that is right, and the run it was taken from. */
const Row = Schema.Struct({
  id: Schema.String,
  input: Schema.String,
  expected: Schema.optionalKey(Schema.Json),
  run_id: Schema.optionalKey(Schema.String)
})
export type Row = typeof Row.Type

/** The body of a request to add a row. */
export const NewRow = Schema.Struct({
  set: setName,
  input: words(1_000_000).check(Schema.isNonEmpty()),
  expected: Schema.optionalKey(words(1_000_000)),
  runId
})

/** A data set, with its last rows. */
export interface DataSet {
  readonly name: string
  /** The path of its file. */
  readonly file: string
  readonly count: number
  readonly rows: ReadonlyArray<Row>
}

/** What a person thinks of a run. */
const Score = Schema.Struct({
  run_id: Schema.String,
  by: Schema.String,
  at: Schema.Finite,
  good: Schema.Boolean,
  /** Words for what is good or bad about the answer, by which scores are counted. */
  labels: Schema.optionalKey(Schema.Array(Schema.String)),
  note: Schema.String
})
export type Score = typeof Score.Type

/** The body of a request to score a run. */
export const NewScore = Schema.Struct({
  runId,
  good: Schema.Boolean,
  labels: Schema.optionalKey(Schema.Array(words(64).check(Schema.isNonEmpty())).check(Schema.isMaxLength(16))),
  note: words(10_000)
})

/** The files of a folder. */
export interface KeptLines {
  readonly sets: Effect.Effect<ReadonlyArray<DataSet>>
  /** Adds a row. A data set has one row of each run. */
  readonly addRow: (row: typeof NewRow.Type) => Effect.Effect<void, Invalid>
  /** Returns the scores, the newest first. The last score of a person for a run replaces the ones before. */
  readonly scores: Effect.Effect<ReadonlyArray<Score>>
  readonly addScore: (score: Score) => Effect.Effect<void, Invalid>
}

const mostBytes = 4 * 1024 * 1024
const shownRows = 50

/** Opens the files of a folder, which is created with the first line. */
export const make = (folder: string): KeptLines => {
  const one = Semaphore.makeUnsafe(1)
  const scoreFile = join(folder, "scores.ndjson")
  const setFile = (name: string) => join(folder, `${name}.jsonl`)
  const rowsOf = (name: string) => lines(setFile(name), Row)
  return {
    sets: Effect.gen(function* () {
      const files = yield* Effect.promise(() => readdir(folder).catch(() => []))
      const names = files.flatMap((file) => /^([\w-]{1,60})\.jsonl$/.exec(file)?.[1] ?? []).toSorted()
      return yield* Effect.forEach(names, (name) =>
        Effect.map(rowsOf(name), (rows) => ({
          name,
          file: setFile(name),
          count: rows.length,
          rows: rows.slice(-shownRows).toReversed()
        }))
      )
    }),
    addRow: ({ expected, input, runId, set }) =>
      Effect.gen(function* () {
        const rows = yield* rowsOf(set)
        if (rows.some(({ id }) => id === runId)) {
          return yield* new Invalid({ detail: `the data set ${set} has this run already` })
        }
        yield* append(setFile(set), {
          id: runId,
          input,
          ...(expected === undefined ? {} : { expected }),
          run_id: runId
        })
      }).pipe(one.withPermits(1)),
    scores: Effect.map(lines(scoreFile, Score), (scores) => {
      const last = new Map(scores.map((score) => [JSON.stringify([score.run_id, score.by]), score]))
      return [...last.values()].toSorted((first, second) => second.at - first.at)
    }),
    addScore: (score) => one.withPermits(1)(append(scoreFile, score))
  }
}

/** Returns the lines of a file that are of a schema, none if it cannot be read or is too large. */
const lines = <A>(file: string, schema: Schema.Codec<A, unknown>): Effect.Effect<ReadonlyArray<A>> => {
  const decode = Schema.decodeUnknownOption(Schema.fromJsonString(schema))
  return Effect.promise(async () => {
    try {
      if ((await stat(file)).size > mostBytes) return []
      return numberedLines(await readFile(file, "utf8")).flatMap(({ line }) => Option.toArray(decode(line)))
    } catch {
      return []
    }
  })
}

const append = (file: string, value: object): Effect.Effect<void, Invalid> =>
  Effect.tryPromise({
    try: async () => {
      await mkdir(join(file, ".."), { recursive: true })
      const size = await stat(file).then(
        ({ size }) => size,
        () => 0
      )
      const line = `${JSON.stringify(value)}\n`
      if (size + line.length > mostBytes) throw new Error("the file is full")
      await appendFile(file, line, { mode: 0o600 })
    },
    catch: (error) => new Invalid({ detail: `nothing was stored: ${error instanceof Error ? error.message : error}` })
  })
