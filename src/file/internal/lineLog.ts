/**
 * A file of numbered lines that several processes may append to.
 *
 * A line has one number or several consecutive ones. Its first number is claimed by a hard link named after it, which
 * holds the whole line and which only one process can create. Then the line is appended and synced, and the link is
 * removed, also after a failure, so that the caller may send the line again. A process that finds the link of a dead
 * process appends the line on its behalf, so no lock is left behind.
 *
 * A process that was suspended and wakes up late may repeat a line, and no process writes another one in its place.
 * Readers take each number once, in order, and skip incomplete lines. The next append ends a line that was cut off. A
 * last line whose line break is missing, as some editors leave it, counts if its checksum is right.
 */

import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import type { PlatformError } from "effect/PlatformError"
import { randomUUID } from "node:crypto"
import * as Storable from "../../kit/storable.ts"
import { isTag, openOwn, readIfThere, syncDirectory } from "./disk.ts"

/** A position in a log: the bytes before it, the last number in them, and their newest format. */
export interface Place {
  readonly offset: number
  readonly seq: number
  readonly format: number
  /** Whether the bytes before it end with a line break. */
  readonly isWhole: boolean
  /** Whether the last line before it is damaged: complete, but without readable numbers. */
  readonly isDamaged: boolean
}

/** A line, and its first and last number. */
export interface Line {
  readonly first: number
  readonly last: number
  readonly text: string
}

/**
 * The outcome of an append: the line was appended between two positions, its number is taken, the file is of a newer
 * format, or the last line is damaged.
 */
export type Appended =
  | { readonly _tag: "Appended"; readonly before: Place; readonly after: Place }
  | { readonly _tag: "Taken"; readonly last: number }
  | { readonly _tag: "Newer"; readonly format: number }
  | { readonly _tag: "Damaged"; readonly last: number }

/** A log. */
export interface Log {
  /**
   * Returns the next lines after a position, about 1 MiB of them, and the position after them. Returns none at the end.
   */
  readonly page: (
    place: Place
  ) => Effect.Effect<{ readonly lines: ReadonlyArray<Line>; readonly place: Place }, PlatformError>
  /** Returns a position near the end with a line after it, or the start of a short file. */
  readonly late: Effect.Effect<Place, PlatformError>
  /** Appends the pending line of a process that died, and returns the position after the last line. */
  readonly end: Effect.Effect<Place, PlatformError>
  /** Appends a line if the number before its first is the last one in the log. */
  readonly append: (line: Line) => Effect.Effect<Appended, PlatformError>
  /** Waits until the lines in the file are on disk, since their writer may have died before syncing them. */
  readonly settle: (line: Line) => Effect.Effect<void, PlatformError>
  /** Continues from a position known from elsewhere. */
  readonly skip: (place: Place) => void
}

/** The start of a log. */
export const start: Place = { offset: 0, seq: 0, format: 0, isWhole: true, isDamaged: false }

/** Options of a log. */
export interface Options {
  /** The number in the JSON object of a line. A line that is a list is numbered from its first object. */
  readonly field: string
  /** The newest format that may be appended to. */
  readonly format: number
  /** Refuse appends after a damaged line. */
  readonly refusesDamage: boolean
  /** Appends do not wait for the disk. */
  readonly isQuick?: boolean
}

/** Opens the log at a path, without reading it yet. */
export const make = (files: FileSystem.FileSystem, path: string, options: Options): Log => {
  const log: Opened = { ...options, files, path, known: start, identity: "" }
  return {
    page: (place) => page(log, place),
    late: late(log),
    end: end(log),
    append: (line) => append(log, line),
    settle: (line) => Effect.andThen(write(log, line.first, new Uint8Array(0)), drop(log, line.first)),
    skip: (place) => {
      if (place.offset > log.known.offset) log.known = place
    }
  }
}

/** Returns the text of the last line and its number, which is 0 in an empty log. Of a long log only the end is read. */
export const newest = Effect.fnUntraced(function* (log: Log) {
  let place = yield* log.late
  log.skip(place)
  yield* log.end
  let found: { readonly number: number; readonly text?: string } = { number: 0 }
  for (;;) {
    const next = yield* log.page(place)
    const line = next.lines.at(-1)
    if (line !== undefined) found = { number: line.last, text: line.text }
    if (next.place.offset === place.offset) return found
    place = next.place
  }
})

/** A log, and the position up to which it was read. */
interface Opened extends Options {
  readonly files: FileSystem.FileSystem
  readonly path: string
  known: Place
  identity: string
}

// ---------------------------------------------------------------- reading

const page = Effect.fnUntraced(function* ({ field, files, path }: Opened, place: Place) {
  const { rest, whole } = yield* readWhole(files, path, place.offset)
  const texts = decode(whole)
  const last = lastLine(rest)
  const lines: Array<Line> = []
  let { format, isDamaged, seq } = place
  let damaged: string | undefined
  for (const text of last === undefined ? texts : texts.concat(last)) {
    const found = plausible(text, numbersOf(text, field), seq)
    // A line that was cut off rarely ends like a complete one.
    if (found === undefined && isClosed(text)) {
      isDamaged = true
      damaged ??= text
    }
    // A process that woke up late repeated a line.
    if (found === undefined || found.last <= seq) continue
    // Nothing else has the numbers of the damaged line, so it stands in their place.
    if (damaged !== undefined && found.first > seq + 1) {
      lines.push({ first: seq + 1, last: found.first - 1, text: damaged })
    }
    damaged = undefined
    isDamaged = false
    lines.push({ first: found.first, last: found.last, text })
    seq = found.last
    format = Math.max(format, found.format)
  }
  const offset = place.offset + whole.length + (last === undefined ? 0 : rest.length)
  return { lines, place: { offset, seq, format, isWhole: rest.length === 0, isDamaged } }
}, Effect.scoped)

const late = Effect.fnUntraced(function* (log: Opened) {
  const size = yield* sizeOf(log.files, log.path)
  if (size <= tailBytes) return start
  const { whole } = yield* readWhole(log.files, log.path, size - tailBytes)
  // It starts inside a line.
  const place = { ...start, offset: size - tailBytes + whole.indexOf(newline) + 1 }
  return (yield* page(log, place)).lines.length > 0 ? place : start
}, Effect.scoped)

/** Reads the lines added since the last query. */
const catchUp = Effect.fnUntraced(function* (log: Opened) {
  for (;;) {
    const { identity, size } = yield* look(log.files, log.path)
    // The file was removed, and perhaps created again.
    if (size < log.known.offset || (log.identity !== "" && identity !== log.identity)) log.known = start
    log.identity = identity
    if (size === log.known.offset) return log.known
    const { place } = yield* page(log, log.known)
    const isEnd = place.offset === log.known.offset
    log.known = place
    if (isEnd) return log.known
  }
})

const end = Effect.fnUntraced(function* (log: Opened) {
  let place = yield* catchUp(log)
  while (yield* help(log, place.seq + 1)) place = yield* catchUp(log)
  return place
})

// ---------------------------------------------------------------- appending

const append = Effect.fnUntraced(function* (log: Opened, line: Line): Effect.fn.Return<Appended, PlatformError> {
  for (;;) {
    const place = yield* catchUp(log)
    if (place.format > log.format) return { _tag: "Newer", format: place.format }
    if (log.refusesDamage && place.isDamaged) return { _tag: "Damaged", last: place.seq }
    if (place.seq !== line.first - 1) return { _tag: "Taken", last: place.seq }
    if (!(yield* claim(log, line))) {
      yield* help(log, line.first)
      continue
    }
    const appended = yield* Effect.ensuring(put(log, line), drop(log, line.first))
    // The number may have been used and its link removed in the meantime; then this claim is void.
    if (appended !== undefined) return { _tag: "Appended", ...appended }
  }
})

/** Claims the first number of a line. Returns false if it is taken. */
const claim = ({ files, path }: Opened, { first, text }: Line) =>
  Effect.acquireUseRelease(
    Effect.succeed(`${path}.${randomUUID()}.tmp`),
    (draft) =>
      files.writeFileString(draft, text, { flag: "wx", mode: 0o600 }).pipe(
        Effect.andThen(files.link(draft, claimOf(path, first))),
        Effect.as(true),
        Effect.catchIf(isTag("AlreadyExists"), () => Effect.succeed(false))
      ),
    (draft) => Effect.ignore(files.remove(draft))
  )

/** Appends the line whose number another process claimed but did not append. Returns false if there is none. */
const help = Effect.fnUntraced(function* (log: Opened, first: number) {
  const text = yield* readIfThere(log.files, claimOf(log.path, first))
  if (text === undefined) return false
  const numbers = numbersOf(text, log.field)
  // A claim that a power failure cut off was never acknowledged.
  if (numbers?.first === first) yield* put(log, { ...numbers, text })
  yield* drop(log, first)
  return true
})

/**
 * Writes a claimed line. Returns undefined if its number is not the next, because it was used or the file was removed.
 */
const put = Effect.fnUntraced(function* (log: Opened, { first, last, text }: Line) {
  for (;;) {
    const before = yield* catchUp(log)
    if (before.seq !== first - 1) return undefined
    const bytes = encoder.encode(before.isWhole ? `${text}\n` : `\n${text}\n`)
    yield* write(log, first, bytes)
    const after = { ...before, offset: before.offset + bytes.length, seq: last, isWhole: true }
    // If no other process wrote, the line is at the expected position. Otherwise check whether it arrived in one piece.
    if ((yield* sizeOf(log.files, log.path)) === after.offset) {
      log.known = after
      return { before, after }
    }
  }
})

/** Adds bytes and syncs the file, and the folder of a new file. */
const write = Effect.fnUntraced(function* ({ files, isQuick, path }: Opened, first: number, bytes: Uint8Array) {
  const file = yield* openOwn(files, path, { flag: "a", mode: 0o600 })
  yield* file.writeAll(bytes)
  if (isQuick === true) return
  const added = first === 1 ? syncDirectory(files, path) : Effect.void
  yield* Effect.all([file.sync, added], { concurrency: 2, discard: true })
}, Effect.scoped)

const drop = ({ files, path }: Opened, first: number) => Effect.ignore(files.remove(claimOf(path, first)))

const claimOf = (path: string, first: number) => `${path}.${first}.claim`

// ---------------------------------------------------------------- helpers

const encoder = new TextEncoder()

const decoder = new TextDecoder()

const newline = 10

// Lines of leases have a few hundred bytes. No process that wakes up late repeats that many.
const tailBytes = 64 * 1024

const decode = (bytes: Uint8Array): ReadonlyArray<string> =>
  bytes.length === 0 ? [] : decoder.decode(bytes.subarray(0, -1)).split("\n")

/** Returns the line at the end of a file whose line break is missing. Undefined for one that was cut off. */
const lastLine = (bytes: Uint8Array): string | undefined => {
  const text = isClosed(bytes.at(-1)) ? decoder.decode(bytes) : ""
  return Storable.check(text) === "right" ? text : undefined
}

/** Returns whether a line ends like a complete one. */
const isClosed = (end: string | number | undefined): boolean =>
  typeof end === "string" ? /[\]}]$/.test(end) : end === bracket || end === brace

const bracket = 93

const brace = 125

interface Numbers extends Pick<Line, "first" | "last">, Pick<Place, "format"> {}

/** Numbers that do not follow the last one count only if their line is undamaged. */
const plausible = (text: string, numbers: Numbers | undefined, seq: number): Numbers | undefined =>
  numbers?.first === seq + 1 || Storable.check(text) !== "wrong" ? numbers : undefined

const numbersOf = (text: string, field: string): Numbers | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    const [object, count] = Array.isArray(value) ? [value[0], value.length] : [value, 1]
    if (typeof object !== "object" || object === null) return undefined
    const [first = Number.NaN, format = 0] = [Reflect.get(object, field), Reflect.get(object, "format")].map(Number)
    return Number.isSafeInteger(first) ? { first, last: first + count - 1, format: format || 0 } : undefined
  } catch {
    return undefined
  }
}

// A new file may get the inode of a removed one at once, but not its creation time.
const identityOf = ({ birthtime, ino }: FileSystem.File.Info): string =>
  `${Option.getOrUndefined(ino)}/${Option.getOrUndefined(birthtime)?.getTime()}`

/** Returns the identity and the size of the file at a path. The size is 0 if there is none. */
export const look = (
  files: FileSystem.FileSystem,
  path: string
): Effect.Effect<{ readonly size: number; readonly identity: string }, PlatformError> =>
  files.stat(path).pipe(
    Effect.map((info) => ({ size: Number(info.size), identity: identityOf(info) })),
    Effect.catchIf(isTag("NotFound"), () => Effect.succeed({ size: 0, identity: "" }))
  )

/** Returns the size of a file, or 0 if there is none. */
export const sizeOf = (files: FileSystem.FileSystem, path: string): Effect.Effect<number, PlatformError> =>
  Effect.map(look(files, path), ({ size }) => size)

/**
 * Reads complete lines from an offset: about 1 MiB, or one longer line. Also returns the bytes of an incomplete line.
 */
const readWhole = Effect.fnUntraced(function* (files: FileSystem.FileSystem, path: string, offset: number) {
  const none = { whole: new Uint8Array(0), rest: new Uint8Array(0) }
  const size = (yield* sizeOf(files, path)) - offset
  if (size <= 0) return none
  // It may have been removed in the meantime.
  const file = yield* Effect.catchIf(openOwn(files, path, { flag: "r" }), isTag("NotFound"), () => Effect.undefined)
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
      return { whole: buffer.subarray(0, end), rest: buffer.subarray(end, filled) }
    }
  }
})
