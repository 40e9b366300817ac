/**
 * Writes runs to files, and reads them into another store.
 */

import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import * as Read from "../../kit/files.ts"
import { numberedLines } from "../../kit/text.ts"
import * as RunCodec from "../../RunCodec.ts"
import type { RunRecord } from "../../RunState.ts"
import * as RunStates from "../../RunState.ts"
import { recordsOf, RunStore } from "../../RunStore.ts"
import type { ExportFlags, ImportFlags } from "../commands/runsFlags.ts"
import { asFailure, unreadable, usage } from "../exit.ts"
import { Screen } from "../screen.ts"
import * as Settings from "../settings.ts"
import * as Store from "../storeFlag.ts"
import * as Text from "../terminalText.ts"
import { find, inStore } from "./findRun.ts"

/** Writes the records of a run and of its tasks as JSON lines, or as a page, to a new file or to the output. */
export const exported = Effect.fnUntraced(function* (options: ExportFlags) {
  if (options.html) return yield* exportPage(options)
  const lines = yield* inStore(options, (id) =>
    Effect.flatMap(
      recordsOf(id),
      Effect.forEach((record) => Effect.fromResult(RunCodec.encodeRecord(record)))
    )
  )
  const text = lines.map((line) => `${Text.escaped(line)}\n`).join("")
  yield* writeNew(options.file, text, `${lines.length} records`)
})

/** Writes a run as one page that needs no network. */
const exportPage = Effect.fnUntraced(function* ({ file, id, store }: ExportFlags) {
  const { toHtml } = yield* Effect.promise(() => import("../../studio/RunExport.ts"))
  const { media, runs } = yield* Store.openExisting(store)
  const html = yield* Effect.flatMap(find(id), toHtml).pipe(
    Effect.mapError(asFailure),
    Effect.provide(Layer.merge(runs, media))
  )
  yield* writeNew(file, html, "the run")
})

/** Writes a new file that only its owner can read, or to the output. Does not replace an existing file. */
const writeNew = Effect.fnUntraced(function* (file: string | undefined, text: string, what: string) {
  const screen = yield* Screen
  if (file === undefined || file === "-") return screen.out(text)
  const fs = yield* FileSystem.FileSystem
  const name = Text.excerpt(file, 80)
  yield* Effect.mapError(fs.writeFileString(file, text, { flag: "wx", mode: 0o600 }), (error) =>
    usage(error.reason._tag === "AlreadyExists" ? `${name} already exists` : `${name} cannot be written`)
  )
  screen.progress(`${what} in ${name}\n`)
})

const maxBytes = 512 * 1024 * 1024

/**
 * Stores the runs of an export. Workers do not claim them; `resume` continues them. The settings of the command line
 * are left out, since they name files of another computer and may allow calls.
 */
export const imported = Effect.fnUntraced(function* ({ file, json, ...options }: ImportFlags) {
  const screen = yield* Screen
  const name = file === "-" ? "the input" : Text.excerpt(file, 80)
  const text = yield* Effect.mapError(read(file), (refusal) => unreadable(name, refusal))
  const journals = yield* journalsIn(text, name)
  const store = yield* Store.openNamed(options)
  const roots = journals.flatMap(({ state }) => (state.parentRunId === undefined ? [state.runId] : []))
  if (roots.length === 0) return yield* usage(`${name} has no run that is not a task of another`)
  const stored = Effect.forEach(journals, ({ records, state }) => RunStore.use((runs) => runs.append(records, state)))
  yield* stored.pipe(
    Effect.mapError((error) => (error._tag === "RunExists" ? usage(error.message) : asFailure(error))),
    Effect.provide(store.runs)
  )
  if (json) return screen.out(`${Text.json({ runs: journals.map(({ state }) => state.runId) })}\n`)
  for (const id of roots) screen.out(`${Text.flat(id)}\n`)
})

const read = (file: string): Effect.Effect<string, Read.Refusal, FileSystem.FileSystem | Stdio.Stdio> =>
  file === "-" ? readInput : FileSystem.FileSystem.use((fs) => Read.text(fs, file, maxBytes))

/** Reads the input to its end, or until it is too large. */
const readInput = Effect.gen(function* () {
  const { stdin } = yield* Stdio.Stdio
  let size = 0
  const pieces = stdin.pipe(
    Stream.tap(({ length }) => ((size += length) > maxBytes ? Effect.fail(Read.tooLarge(maxBytes)) : Effect.void)),
    Stream.decodeText
  )
  return yield* Stream.mkString(pieces)
})

/**
 * Returns the journals of a file, each with its final state. Tasks come first, so that a list shows a root once they
 * are stored.
 */
const journalsIn = Effect.fnUntraced(function* (text: string, name: string) {
  const codec = RunCodec.make()
  const records = yield* Effect.forEach(numberedLines(text), ({ line, number }) =>
    Result.match(codec.decodeRecord(line), {
      onFailure: (error) => Effect.fail(usage(`line ${number} of ${name}: ${Text.excerpt(error.message, 300)}`)),
      onSuccess: (record) => Effect.succeed(withoutSettings(record))
    })
  )
  return [...Map.groupBy(records, ({ runId }) => runId).values()].toReversed().flatMap((records) => {
    const state = RunStates.fold(records)
    return state === undefined || !Arr.isReadonlyArrayNonEmpty(records) ? [] : [{ records, state }]
  })
})

const withoutSettings = (record: RunRecord): RunRecord => ({
  ...record,
  events: record.events.map((event) =>
    event.type === "run_started" ? { ...event, context: Settings.without(event.context) } : event
  ),
  delta:
    record.delta.context === undefined
      ? record.delta
      : { ...record.delta, context: Settings.without(record.delta.context) }
})
