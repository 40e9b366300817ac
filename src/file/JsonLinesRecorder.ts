/**
 * Records to a file: one JSON entry per line, appended while a run continues.
 *
 * The run only puts entries into a bounded buffer. One fiber writes them, and writes the rest when the scope closes. A
 * slow or full disk loses entries but does not affect the run: a line `entries_lost` then holds the number of missing
 * entries.
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
import { inMadeFolder } from "../kit/files.ts"
import * as Streams from "../kit/streams.ts"
import * as Limits from "../Limits.ts"
import * as Recorder from "../Recorder.ts"

/**
 * Options of a recording.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options extends Recorder.Options {
  /** Maximum entries kept in memory while the disk is busy. Default: 10,000. */
  readonly limit?: number | undefined
}

/**
 * Opens a file for appending and returns the sink that writes to it. The folder of a new file is created if necessary,
 * and only its owner can read the file.
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
  const mailbox = Streams.mailbox<Recorder.Entry>({ limit: options?.limit ?? 10_000, keep: () => false })
  const writer = write(file, mailbox)
  yield* Effect.acquireRelease(Effect.forkDetach(writer), (fiber) =>
    Effect.suspend(() => {
      mailbox.end()
      // A disk that does not respond must not keep the scope open.
      return Fiber.await(fiber).pipe(Effect.timeoutOption(cleanUpTimeout), Effect.andThen(Fiber.interrupt(fiber)))
    })
  )
  return Recorder.entries(mailbox.offer, options)
})

/**
 * Records to a file, in addition to the existing recorders.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (path: string, options?: Options): Layer.Layer<never, PlatformError, FileSystem.FileSystem> =>
  Layer.unwrap(Effect.map(make(path, options), Recorder.layer))

// ---------------------------------------------------------------- helpers

/** Opens a file for appending, and ends a line that a crash cut off. */
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

const write = (file: FileSystem.File, mailbox: Streams.Mailbox<Recorder.Entry>): Effect.Effect<void> => {
  const encoder = new TextEncoder()
  let failed = 0
  let told = 0
  let torn = false
  const batch = Effect.fnUntraced(function* (entries: ReadonlyArray<Recorder.Entry>) {
    const lost = mailbox.dropped() + failed - told
    const lines = entries.map((entry) => `${JSON.stringify(entry)}\n`)
    if (lost > 0) lines.unshift(lostLine(lost, yield* Clock.currentTimeMillis))
    // The previous batch may have stopped inside a line.
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
  // No entry follows the last loss, so it is written at the end.
  return Pull.catchDone(Effect.forever(next), () => Effect.ignore(batch([])))
}

const lostLine = (count: number, at: number): string => {
  const scope = { runId: "", step: 0, depth: 0, taskId: null }
  const entry: Recorder.Entry = { ...scope, event: "entries_lost", data: { count }, timestamp: Recorder.timestamp(at) }
  return `${JSON.stringify(entry)}\n`
}
