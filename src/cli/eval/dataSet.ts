/**
 * Data sets in files: JSON lines, or CSV with a header line. Every row has an `input`. It may have an `id`, an
 * `expected` answer, the `replies` of a scripted model, and any other fields.
 */

import * as Effect from "effect/Effect"
import { Csv } from "effect/encoding"
import * as FileSystem from "effect/FileSystem"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Read from "../../kit/files.ts"
import * as Fault from "../../kit/fault.ts"
import { numberedLines } from "../../kit/text.ts"
import { Limits } from "../../Limits.ts"
import type { Case } from "../../testing/Evaluation.ts"
import { unreadable, usage } from "../exit.ts"
import * as Text from "../terminalText.ts"

/** A case, and the replies of a scripted model to it. */
export interface Row extends Case {
  readonly replies?: ReadonlyArray<string> | undefined
}

/** Returns true if a file of this name is a data set. */
export const isDataSet = (file: string): boolean => /\.(jsonl|ndjson|csv)$/i.test(file)

/**
 * Reads the cases of files. The id of a row without one is its number, counted from 1, preceded by the file if there
 * are several.
 */
export const readAll = Effect.fnUntraced(function* (files: ReadonlyArray<string>) {
  const found = yield* Effect.forEach(files, (file) =>
    Effect.map(read(file), (rows) =>
      rows.map((row) => (files.length === 1 ? row : { ...row, id: `${file}:${row.id}` }))
    )
  )
  const ids = new Set<string>()
  for (const { id } of found.flat()) {
    if (ids.has(id)) return yield* usage(`the id '${Text.excerpt(id, 80)}' occurs twice`)
    ids.add(id)
  }
  return found.flat()
})

const read = Effect.fnUntraced(function* (file: string) {
  const fs = yield* FileSystem.FileSystem
  const { fetchedBytes } = yield* Limits
  const name = Text.excerpt(file, 80)
  const marked = yield* Effect.mapError(Read.text(fs, file, fetchedBytes), (refusal) => unreadable(name, refusal))
  const text = marked.startsWith("\uFEFF") ? marked.slice(1) : marked
  const rows = yield* file.toLowerCase().endsWith(".csv") ? ofCsv(text, name) : ofLines(text, name)
  if (rows.length === 0) return yield* usage(`${name} has no row`)
  return yield* Effect.forEach(rows, (row, index) => caseOf(row, index + 1, name))
})

const decodeLine = Schema.decodeUnknownEffect(Schema.fromJsonString(Schema.Record(Schema.String, Schema.Json)))

const ofLines = (text: string, name: string) =>
  Effect.forEach(numberedLines(text), ({ line, number }) =>
    Effect.mapError(decodeLine(line), () => usage(`line ${number} of ${name} is not a JSON object`))
  )

const ofCsv = (text: string, name: string) =>
  Stream.make(text).pipe(
    Stream.pipeThroughChannel(Csv.decodeString({ headers: true, ignoreEmptyLines: true })),
    Stream.map((row): { readonly [name: string]: Schema.Json } =>
      // An empty cell counts as absent.
      Object.fromEntries(Object.entries(row).filter(([, cell]) => cell !== ""))
    ),
    Stream.runCollect,
    Effect.mapError(({ line, message }) => usage(`line ${line} of ${name}: ${Text.excerpt(message, 200)}`))
  )

const Fields = Schema.Struct({
  id: Schema.optionalKey(Schema.Union([Schema.NonEmptyString, Schema.Finite])),
  input: Schema.NonEmptyString,
  expected: Schema.optionalKey(Schema.Json),
  replies: Schema.optionalKey(Schema.Union([Schema.String, Schema.NonEmptyArray(Schema.String)]))
})

const decodeFields = Schema.decodeUnknownEffect(Fields)

const caseOf = Effect.fnUntraced(function* (
  row: { readonly [name: string]: Schema.Json },
  number: number,
  name: string
) {
  const fields = yield* Effect.mapError(decodeFields(row), (error) => {
    const { path, reason } = Fault.ofSchema(error)
    return usage(`row ${number} of ${name}: '${path.slice(1)}' ${Text.excerpt(reason, 200)}`)
  })
  const { expected, id = number, input, replies } = fields
  const found: Row = {
    id: String(id),
    input,
    expected,
    fields: row,
    replies: replies === undefined ? undefined : [replies].flat()
  }
  return found
})
