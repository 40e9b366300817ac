/**
 * Reads the journals of runs in a directory, a page at a time, and folds them to states.
 *
 * The stored parts of a state are a shortcut: if they do not fit the journal, only the journal counts. A missing record
 * is an error and is never skipped.
 */

import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import type * as StateParts from "../../store-kit/StateParts.ts"
import { damaged, foldFrom, noteUnsealed, readAfter } from "../../store-kit/StoreRules.ts"
import { StoreError } from "../../KernelError.ts"
import * as RunCodec from "../../RunCodec.ts"
import type { RunRecord, RunState } from "../../RunState.ts"
import { failed } from "./disk.ts"
import type { Histories } from "./fileHistories.ts"
import * as Heads from "./headFile.ts"
import * as Log from "./lineLog.ts"
import * as Name from "./fileName.ts"

/** Creates the journals of a directory. Loaded runs are noted in `marks`, for later parts. */
export const make = (
  files: FileSystem.FileSystem,
  directory: string,
  codec: RunCodec.RunCodec,
  histories: Histories,
  marks: StateParts.Marks
) => {
  const logs = Name.cache((name) =>
    Log.make(files, `${directory}/${name}.jsonl`, { field: "revision", format: RunCodec.format, refusesDamage: true })
  )

  /** Returns the records after a position, up to the first unreadable one, and the position after them. */
  const page = Effect.fnUntraced(function* (runId: string, log: Log.Log, after: Log.Place) {
    const { lines, place } = yield* log.page(after)
    const texts = lines.map(({ text }) => text)
    const earlier = yield* histories.earlier(texts[0])
    return { ...readAfter(runId, after.seq, texts, (text) => codec.decodeRecords(text, earlier)), place }
  })

  /** Folds the journal from a position on. */
  const fold = Effect.fnUntraced(function* (
    runId: string,
    log: Log.Log,
    place: Log.Place,
    start: RunState | undefined
  ) {
    yield* log.end
    let state = start
    for (let after = place; ;) {
      const next = yield* page(runId, log, after)
      yield* noteUnsealed(runId, next)
      if (next.fault !== undefined) return yield* next.fault
      state = yield* foldFrom(state, next.records)
      if (next.place.offset === after.offset) return next.place.isDamaged ? yield* unreadable(runId, next.place) : state
      after = next.place
    }
  })

  /** Folds the records after the parts of a state. If the parts do not fit, only the journal counts. */
  const shortcut = Effect.fnUntraced(function* (runId: string, log: Log.Log, parts: Heads.Parts, least: number) {
    log.skip(parts.place)
    if ((yield* log.end).offset < parts.place.offset) return undefined
    const state = yield* Effect.catchTag(
      fold(runId, log, parts.place, parts.state),
      "StoreError",
      () => Effect.undefined
    )
    return state === undefined || state.revision < least ? undefined : state
  })

  /** Returns the state at the last record of a run, folded from the nearest stored part. */
  const load = Effect.fnUntraced(function* (runId: string) {
    const log = logs(Name.make(runId))
    const path = `${directory}/${Name.make(runId)}`
    const least = (yield* Heads.read(files, path))?.head.revision ?? 0
    const parts = yield* Heads.readParts(files, path, codec, histories)
    const short = parts === undefined ? undefined : yield* shortcut(runId, log, parts, least)
    const state = short ?? (yield* fold(runId, log, Log.start, undefined))
    if (state === undefined) return least > 0 ? yield* damaged(runId, 1, "it is missing") : Option.none<RunState>()
    if (state.revision < least) return yield* damaged(runId, state.revision + 1, "it is missing")
    marks.set(state, short === undefined || parts === undefined ? RunCodec.start : parts.mark)
    return Option.some(state)
  })

  /**
   * Creates a reader that returns a page at each call. An unreadable record fails the call after the records before it.
   */
  const reader = (runId: string, fromRevision: number) => {
    const log = logs(Name.make(runId))
    let place = Log.start
    let fault: StoreError | undefined
    const next: Effect.Effect<ReadonlyArray<RunRecord>, StoreError> = Effect.suspend(() => {
      if (fault !== undefined) return Effect.fail(fault)
      return Effect.flatMap(Effect.catchTag(page(runId, log, place), "PlatformError", failed("read")), (found) => {
        const isEnd = found.place.offset === place.offset
        place = found.place
        fault = found.fault ?? (isEnd && place.isDamaged ? unreadable(runId, place) : undefined)
        const records = found.records.filter((record) => record.revision > fromRevision)
        return records.length > 0 || (isEnd && fault === undefined) ? Effect.succeed(records) : next
      })
    })
    return next
  }

  return {
    /** Returns the log of a run, by the name of its files. */
    log: logs,
    /** Returns the earlier messages that a run refers to. */
    earlier: (runId: string) =>
      Effect.map(logs(Name.make(runId)).page(Log.start), ({ lines: [line] }) => RunCodec.earlierIn(line?.text ?? "")),
    /** Returns the state of a run, by the name of its files, or undefined without records. */
    fold: (name: string) => fold(name, logs(name), Log.start, undefined),
    /** Returns the stored records of a run between two revisions, up to the first unreadable one. */
    between: (log: Log.Log, line: Pick<Log.Line, "first" | "last">) => between(codec, histories, log, line),
    load,
    reader
  }
}

/** Returns the stored records of a run between two revisions, up to the first unreadable one. */
const between = Effect.fnUntraced(function* (
  codec: RunCodec.RunCodec,
  histories: Histories,
  log: Log.Log,
  { first, last }: Pick<Log.Line, "first" | "last">
) {
  const texts: Array<string> = []
  for (let place = Log.start; ;) {
    const next = yield* log.page(place)
    for (const line of next.lines) if (line.last >= first && line.first <= last) texts.push(line.text)
    if (next.place.seq >= last || next.place.offset === place.offset) break
    place = next.place
  }
  const earlier = yield* histories.earlier(texts[0])
  return readAfter("", first - 1, texts, (text) => codec.decodeRecords(text, earlier)).records
})

const unreadable = (runId: string, { seq }: Log.Place) => damaged(runId, seq + 1, "it cannot be read")
