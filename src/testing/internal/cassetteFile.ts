/**
 * The file of a recording, to which exchanges are added one at a time, and its writer.
 *
 * It is JSON for people. An exchange overwrites the end of the file and adds the end again, so earlier exchanges are
 * never written again.
 *
 * Writing belongs to a scope and not to the reader of a response: if a reader leaves early, the scope still waits for
 * pending writes. A failed write is logged, and closing the scope dies with its error.
 */

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FiberSet from "effect/FiberSet"
import type * as FileSystem from "effect/FileSystem"
import * as Semaphore from "effect/Semaphore"
import { StoreError } from "../../KernelError.ts"
import * as Limits from "../../Limits.ts"
import { inMadeFolder, tooLarge } from "../../kit/files.ts"
import type { Cassette, Exchange } from "../Cassette.ts"
import * as Redaction from "./anonymize.ts"

/** The file to write, its content, and the name and vendor of the recording. */
interface Recording {
  readonly file: string
  readonly old: Cassette | undefined
  readonly vendor: string | undefined
  readonly name: string | undefined
}

/** Returns a function that writes an exchange and waits until it is written. */
export const make = Effect.fnUntraced(function* (files: FileSystem.FileSystem, recording: Recording) {
  const append = appender(files, recording)
  const lock = yield* Semaphore.make(1)
  const { cleanUpTimeout } = yield* Limits.Limits
  const writing = yield* FiberSet.make<void>()
  let lost: StoreError | undefined
  // The next exchange is written together with those that failed before.
  const finish = (exit: Exit.Exit<void, unknown>): Effect.Effect<void> => {
    lost = Exit.isFailure(exit) ? unwritten(recording.file, exit.cause) : undefined
    return lost === undefined ? Effect.void : Effect.logError(`an exchange was not recorded: ${lost.detail}`)
  }
  yield* Effect.addFinalizer(() =>
    FiberSet.awaitEmpty(writing).pipe(
      Effect.timeoutOption(cleanUpTimeout),
      Effect.andThen(FiberSet.clear(writing)),
      Effect.andThen(FiberSet.awaitEmpty(writing)),
      Effect.andThen(Effect.suspend(() => (lost === undefined ? Effect.void : Effect.die(lost))))
    )
  )
  return (exchange: Exchange): Effect.Effect<void> =>
    lock
      .withPermits(1)(append(exchange))
      .pipe(
        Effect.onExit(finish),
        Effect.ignore,
        (write) => FiberSet.run(writing, write),
        Effect.flatMap(Fiber.await),
        Effect.asVoid
      )
})

/** Logs why an exchange was not recorded. */
export const notRecorded = (why: string) => Effect.logWarning(`an exchange was not recorded: ${why}`)

/** The end of a file after its last exchange. */
export const tail = "\n  ]\n}\n"

/** Encodes a recording or an exchange. */
const shown = (value: Cassette | Exchange): string => JSON.stringify(value, undefined, 2)

/** Returns the text that replaces the tail when an exchange is added. */
const added = (exchange: Exchange): string => `,\n    ${shown(exchange).replaceAll("\n", "\n    ")}${tail}`

/** Returns the bytes of a file, or undefined if they are unknown. */
const sizeOf = (files: FileSystem.FileSystem, file: string) =>
  Effect.orElseSucceed(
    Effect.map(files.stat(file), ({ size }) => Number(size)),
    () => undefined
  )

/**
 * Replaces a file through a temporary file, and creates its folder if necessary. An interrupted process leaves the old
 * file or the new one.
 */
const replace = (files: FileSystem.FileSystem, file: string, bytes: Uint8Array) => {
  const draft = `${file}.tmp`
  return inMadeFolder(files, draft, files.writeFile(draft, bytes)).pipe(
    Effect.andThen(files.rename(draft, file)),
    Effect.onError(() => Effect.ignore(files.remove(draft)))
  )
}

/**
 * Writes bytes at a position and leaves everything before it unchanged. An interrupted process leaves a file that
 * `untilCut` can repair.
 */
const writeAt = (files: FileSystem.FileSystem, file: string, at: number, bytes: Uint8Array) =>
  Effect.scoped(
    Effect.flatMap(files.open(file, { flag: "r+" }), (opened) =>
      Effect.andThen(opened.seek(BigInt(at), "start"), opened.writeAll(bytes))
    )
  )

/** Repairs a file that was cut off while an exchange was added, up to the last complete exchange. */
export const untilCut = (text: string): string => `${text.slice(0, text.lastIndexOf("\n    }") + 6)}${tail}`

const unwritten = (file: string, cause: Cause.Cause<unknown>) =>
  new StoreError({
    operation: "record an exchange",
    reason: "unavailable",
    detail: Cause.hasInterruptsOnly(cause) ? `'${file}' was not written in time` : `'${file}' cannot be written`
  })

/** Adds exchanges to the end of the file, or writes the whole file if it was changed from outside. */
const appender = (files: FileSystem.FileSystem, { file, name, old, vendor }: Recording) => {
  const exchanges = old?.interactions.slice() ?? []
  // The position of the next exchange, once the file is known to be unchanged.
  let end: number | undefined
  const whole = (exchange: Exchange): string =>
    shown({
      vendor: vendor ?? old?.vendor ?? Redaction.hostOf(exchange.request.url),
      name: name ?? old?.name ?? file.replace(/^.*[/\\]/, "").replace(/\.json$/, ""),
      model: old?.model ?? Redaction.modelOf(exchange.request.body),
      interactions: [...exchanges, exchange]
    })
  return Effect.fnUntraced(function* (exchange: Exchange) {
    const { fetchedBytes } = yield* Limits.Limits
    const at = end !== undefined && (yield* sizeOf(files, file)) === end + tail.length ? end : undefined
    const bytes = new TextEncoder().encode(at === undefined ? `${whole(exchange)}\n` : added(exchange))
    const size = (at ?? 0) + bytes.length
    if (size > fetchedBytes) return yield* notRecorded(`'${file}' would be ${tooLarge(fetchedBytes)}`)
    exchanges.push(exchange)
    end = undefined
    yield* at === undefined ? replace(files, file, bytes) : writeAt(files, file, at, bytes)
    end = size - tail.length
  })
}
