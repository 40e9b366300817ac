/**
 * A recording as a file: one JSON entry per line, appended as a run goes on.
 *
 * The run only puts entries into a bounded buffer; one fiber writes them, and
 * what is left is written when the scope closes. A disk that is too slow or
 * full costs entries, never the run: where some are missing, a line called
 * `entries_lost` says how many.
 *
 * @since 0.1.0
 */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import type { PlatformError } from "effect/PlatformError"
import * as Pull from "effect/Pull"
import type * as Scope from "effect/Scope"
import { inMadeFolder } from "../internal/base/files.ts"
import * as Mailbox from "../internal/base/mailbox.ts"
import * as Limits from "../Limits.ts"
import * as Recorder from "../Recorder.ts"

/**
 * How a recording is written.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options extends Recorder.Options {
  /** Entries kept in memory while the disk is busy. Default: 10,000. */
  readonly limit?: number | undefined
}

/**
 * Opens a file at its end and gives the sink that writes to it. A new file is readable by its owner only; its folder is
 * made if it is not there.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = Effect.fnUntraced(function* (
  path: string,
  options?: Options
): Effect.fn.Return<Recorder.Sink, PlatformError, FileSystem.FileSystem | Scope.Scope> {
  const { cleanUpTimeout } = yield* Limits.Limits
  const file = yield* openAtEnd(path)
  const mailbox = Mailbox.make<Recorder.Entry>({ limit: options?.limit ?? 10_000, keep: () => false })
  const writer = write(file, mailbox)
  yield* Effect.acquireRelease(Effect.forkDetach(writer), (fiber) =>
    Effect.suspend(() => {
      mailbox.end()
      // A disk that no longer answers must not keep the scope open.
      return Fiber.await(fiber).pipe(Effect.timeoutOption(cleanUpTimeout), Effect.andThen(Fiber.interrupt(fiber)))
    })
  )
  return Recorder.entries(mailbox.offer, options)
})

/**
 * Records to a file, next to what is recorded already.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (path: string, options?: Options): Layer.Layer<never, PlatformError, FileSystem.FileSystem> =>
  Layer.unwrap(Effect.map(make(path, options), Recorder.layer))

// ---------------------------------------------------------------- helpers

/** A line that a crash cut off is ended first, so that it spoils no other. */
const openAtEnd = Effect.fnUntraced(function* (path: string) {
  const files = yield* FileSystem.FileSystem
  const file = yield* inMadeFolder(files, path, files.open(path, { flag: "a+", mode: 0o600 }), { mode: 0o700 })
  const { size } = yield* file.stat
  if (size > 0n) {
    const last = new Uint8Array(1)
    yield* file.read(last, { position: size - 1n })
    if (last[0] !== newline) yield* file.writeAll(Uint8Array.of(newline))
  }
  return file
})

const newline = 10

const write = (file: FileSystem.File, mailbox: Mailbox.Mailbox<Recorder.Entry>): Effect.Effect<void> => {
  const encoder = new TextEncoder()
  let failed = 0
  let told = 0
  let torn = false
  const batch = Effect.fnUntraced(function* (entries: ReadonlyArray<Recorder.Entry>) {
    const lost = mailbox.dropped() + failed - told
    const lines = entries.map((entry) => `${JSON.stringify(entry)}\n`)
    if (lost > 0) lines.unshift(lostLine(lost, yield* Clock.currentTimeMillis))
    // The batch before may have stopped in the middle of a line.
    if (torn) lines.unshift("\n")
    yield* file.writeAll(encoder.encode(lines.join("")))
    told += lost
    torn = false
  })
  const next = Effect.flatMap(mailbox.take, (entries) =>
    Effect.catch(batch(entries), (error) =>
      Effect.suspend(() => {
        const isFirst = failed === 0
        failed += entries.length
        torn = true
        return isFirst ? Effect.logWarning("a recording misses entries", error) : Effect.void
      })
    )
  )
  // What was lost last has nothing after it to be told with.
  return Pull.catchDone(Effect.forever(next), () => Effect.ignore(batch([])))
}

const lostLine = (count: number, at: number): string => {
  const scope = { runId: "", step: 0, depth: 0, taskId: null }
  const entry: Recorder.Entry = { ...scope, event: "entries_lost", data: { count }, timestamp: Recorder.timestamp(at) }
  return `${JSON.stringify(entry)}\n`
}
