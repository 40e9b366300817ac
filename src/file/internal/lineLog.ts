/**
 * A file of numbered lines that several processes may append to.
 *
 * Line n is taken by making a hard link named after n, which succeeds for one
 * process only and is complete when it is there; then the line is appended and
 * synced, and the link removed, also where that failed: who is told so may say
 * the same elsewhere. Whoever finds the link of a process that died appends the
 * line for it, so no lock can be left behind, and a process that was stopped and
 * wakes up late writes no line in place of one that is there.
 *
 * Readers take each number once, in order, and pass over what is no whole
 * line: a cut end is ended by the next append.
 */

import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import type { PlatformError } from "effect/PlatformError"
import { randomUUID } from "node:crypto"
import { isTag, readIfThere, syncDirectory } from "./disk.ts"

/** A place in a log: how many bytes come before it, the last number, and the newest format of a line. */
export interface Place {
  readonly offset: number
  readonly seq: number
  readonly format: number
  /** Whether the bytes before it end with a line. */
  readonly isWhole: boolean
}

/** A line and its number. */
export interface Line {
  readonly seq: number
  readonly text: string
}

/** What an append came to: the line is there, or another is, or the file is of a newer format. */
export type Appended =
  | { readonly _tag: "Appended"; readonly place: Place }
  | { readonly _tag: "Taken"; readonly last: number }
  | { readonly _tag: "Newer"; readonly format: number }

/** A log. */
export interface Log {
  /** The next lines after a place, about a MiB of them, and the place after them. None at the end. */
  readonly page: (
    place: Place
  ) => Effect.Effect<{ readonly lines: ReadonlyArray<Line>; readonly place: Place }, PlatformError>
  /** A place near the end, with a line behind it; the beginning of a short file. For who only asks for the last line. */
  readonly late: Effect.Effect<Place, PlatformError>
  /** The place after the last line, the line of a process that died included. */
  readonly end: Effect.Effect<Place, PlatformError>
  /** Appends line `seq`, if the one before it is the last. The same line once more is no change. */
  readonly append: (seq: number, text: string) => Effect.Effect<Appended, PlatformError>
  /** Tells what is known of the log from elsewhere, so that it need not be read up to there. */
  readonly skip: (place: Place) => void
}

/** The beginning. */
export const start: Place = { offset: 0, seq: 0, format: 0, isWhole: true }

/** What the lines of a log are. */
export interface Options {
  /** The field of their JSON that is their number. */
  readonly field: string
  readonly format: number
  /** Whether two lines say the same. */
  readonly isSame: (a: string, b: string) => boolean
}

/** A log at a path. */
export const make = (files: FileSystem.FileSystem, path: string, { field, format: own, isSame }: Options): Log => {
  let known = start
  let file = ""

  const claimOf = (seq: number) => `${path}.${seq}.claim`

  const page: Log["page"] = Effect.fnUntraced(function* (place) {
    const bytes = yield* readWhole(files, path, place.offset)
    const lines: Array<Line> = []
    let { format, seq } = place
    for (const text of decode(bytes.whole)) {
      const found = numbersOf(text, field)
      // A number below was repeated by a process that woke up late.
      if (found === undefined || found.seq <= seq) continue
      lines.push({ seq: found.seq, text })
      seq = found.seq
      format = Math.max(format, found.format)
    }
    const offset = place.offset + bytes.whole.length
    return { lines, place: { offset, seq, format, isWhole: bytes.rest === 0 } }
  }, Effect.scoped)

  const late = Effect.gen(function* () {
    const size = yield* sizeOf(files, path)
    if (size <= tailBytes) return start
    const { whole } = yield* readWhole(files, path, size - tailBytes)
    // It begins within a line.
    const place = { ...start, offset: size - tailBytes + whole.indexOf(newline) + 1 }
    return (yield* page(place)).lines.length > 0 ? place : start
  }).pipe(Effect.scoped)

  /** Reads what was added since we looked last. */
  const catchUp = Effect.gen(function* () {
    for (;;) {
      const { identity, size } = yield* look(files, path)
      // The run was removed, and perhaps begun anew.
      if (size < known.offset || (file !== "" && identity !== file)) known = start
      file = identity
      if (size === known.offset) return known
      const { place } = yield* page(known)
      const isEnd = place.offset === known.offset
      known = place
      if (isEnd) return known
    }
  })

  /** Adds bytes, none too, and waits until the file is on the disk, and is known to its folder where it is new. */
  const settle = Effect.fnUntraced(function* (seq: number, bytes: Uint8Array) {
    const file = yield* files.open(path, { flag: "a", mode: 0o600 })
    yield* file.writeAll(bytes)
    yield* file.sync
    if (seq === 1) yield* syncDirectory(files, path)
  }, Effect.scoped)

  /** Appends a line. Undefined where its number is not the next: one is there, perhaps ours, or the run was removed. */
  const write = Effect.fnUntraced(function* (seq: number, text: string) {
    for (;;) {
      const before = yield* catchUp
      if (before.seq !== seq - 1) return undefined
      const bytes = encoder.encode(before.isWhole ? `${text}\n` : `\n${text}\n`)
      yield* settle(seq, bytes)
      const after = { ...before, offset: before.offset + bytes.length, seq, isWhole: true }
      // Were we alone, the line is where we think; else look whether it came through in one piece.
      if ((yield* sizeOf(files, path)) === after.offset) return (known = after)
    }
  })

  /** Takes a number for a text; false when it is taken. */
  const claim = (seq: number, text: string) =>
    Effect.acquireUseRelease(
      Effect.succeed(`${path}.${randomUUID()}.tmp`),
      (draft) =>
        files.writeFileString(draft, text, { flag: "wx", mode: 0o600 }).pipe(
          Effect.andThen(files.link(draft, claimOf(seq))),
          Effect.as(true),
          Effect.catchIf(isTag("AlreadyExists"), () => Effect.succeed(false))
        ),
      (draft) => Effect.ignore(files.remove(draft))
    )

  const drop = (seq: number) => Effect.ignore(files.remove(claimOf(seq)))

  /** Appends the line another process took the number for but did not append; false when there is none. */
  const help = Effect.fnUntraced(function* (seq: number) {
    const text = yield* readIfThere(files, claimOf(seq))
    if (text === undefined) return false
    // What a power cut left of a claim was never acknowledged.
    if (numbersOf(text, field)?.seq === seq) yield* write(seq, text)
    yield* drop(seq)
    return true
  })

  const end = Effect.gen(function* () {
    let place = yield* catchUp
    while (yield* help(place.seq + 1)) place = yield* catchUp
    return place
  })

  const textAt = Effect.fnUntraced(function* (seq: number) {
    let place = start
    for (;;) {
      const next = yield* page(place)
      const line = next.lines.find((line) => line.seq === seq)
      if (line !== undefined || next.place.offset === place.offset) return line?.text
      place = next.place
    }
  })

  const append: Log["append"] = Effect.fnUntraced(function* (seq, text) {
    for (;;) {
      const place = yield* catchUp
      if (place.format > own) return { _tag: "Newer", format: place.format }
      if (place.seq >= seq) {
        const there = yield* textAt(seq)
        if (there === undefined || !isSame(there, text)) return { _tag: "Taken", last: place.seq }
        // Whoever wrote it may have been cut off before it was on the disk.
        yield* settle(seq, new Uint8Array(0))
        yield* drop(seq)
        return { _tag: "Appended", place }
      }
      if (place.seq < seq - 1) return { _tag: "Taken", last: place.seq }
      if (!(yield* claim(seq, text))) {
        yield* help(seq)
        continue
      }
      const after = yield* Effect.ensuring(write(seq, text), drop(seq))
      // The number may have been used and its link removed since we looked; then ours says nothing.
      if (after !== undefined) return { _tag: "Appended", place: after }
    }
  })

  const skip: Log["skip"] = (place) => {
    if (place.offset > known.offset) known = place
  }

  return { page, late, end, append, skip }
}

// ---------------------------------------------------------------- helpers

const encoder = new TextEncoder()

const decoder = new TextDecoder()

const newline = 10

// Lines of some hundred bytes: no process that woke up late repeats as many.
const tailBytes = 64 * 1024

const decode = (bytes: Uint8Array): ReadonlyArray<string> =>
  bytes.length === 0 ? [] : decoder.decode(bytes.subarray(0, -1)).split("\n")

const numbersOf = (text: string, field: string): Pick<Place, "seq" | "format"> | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value !== "object" || value === null) return undefined
    const [seq, format] = [Reflect.get(value, field), Reflect.get(value, "format")].map(Number)
    return Number.isSafeInteger(seq) && seq !== undefined ? { seq, format: format || 0 } : undefined
  } catch {
    return undefined
  }
}

// A number may be given to a new file at once, but not its time of birth.
const identityOf = ({ birthtime, ino }: FileSystem.File.Info): string =>
  `${Option.getOrUndefined(ino)}/${Option.getOrUndefined(birthtime)?.getTime()}`

/** Which file there is and how long it is; of size 0 when there is none. */
export const look = (
  files: FileSystem.FileSystem,
  path: string
): Effect.Effect<{ readonly size: number; readonly identity: string }, PlatformError> =>
  files.stat(path).pipe(
    Effect.map((info) => ({ size: Number(info.size), identity: identityOf(info) })),
    Effect.catchIf(isTag("NotFound"), () => Effect.succeed({ size: 0, identity: "" }))
  )

/** The size of a file; 0 when there is none. */
export const sizeOf = (files: FileSystem.FileSystem, path: string): Effect.Effect<number, PlatformError> =>
  Effect.map(look(files, path), ({ size }) => size)

/** Reads whole lines from an offset on: about a MiB of them, or one that is longer; and how much follows of a cut one. */
const readWhole = Effect.fnUntraced(function* (files: FileSystem.FileSystem, path: string, offset: number) {
  const none = { whole: new Uint8Array(0), rest: 0 }
  const size = (yield* sizeOf(files, path)) - offset
  if (size <= 0) return none
  // It may have been removed since.
  const file = yield* Effect.catchIf(files.open(path, { flag: "r" }), isTag("NotFound"), () => Effect.undefined)
  if (file === undefined) return none
  for (let length = 1024 * 1024; ; length *= 4) {
    const buffer = new Uint8Array(Math.min(length, size))
    let filled = 0
    while (filled < buffer.length) {
      const read = yield* file.read(buffer.subarray(filled), { position: BigInt(offset + filled) })
      if (read === 0) break
      filled += read
    }
    const end = buffer.subarray(0, filled).lastIndexOf(newline) + 1
    if (end > 0 || filled >= size || filled < buffer.length) {
      return { whole: buffer.subarray(0, end), rest: filled - end }
    }
  }
})
