/**
 * Reads the heads of the runs in a directory, and reads them again only after changes.
 *
 * Every append, lease and removal creates or removes files, so an unchanged directory holds the same runs as before: a
 * worker that looks for runs twice a second does not read thousands of heads each time. In a changed directory, heads
 * with an unchanged journal and leases with an unchanged file are reused. Unreadable files are retried at every query.
 */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import type { PlatformError } from "effect/PlatformError"
import type { StoreError } from "../../KernelError.ts"
import { type JournalHead, journalHeadOf, underLease, withTags } from "../../store-kit/StoreRules.ts"
import type { RunState } from "../../RunState.ts"
import type { RunHead } from "../../RunStore.ts"
import * as Head from "./headFile.ts"
import type { FileClock } from "./fileClock.ts"
import * as Leases from "./fileLease.ts"
import * as Tags from "./fileTags.ts"
import * as Log from "./lineLog.ts"
import * as Name from "./fileName.ts"

/** Creates the heads of a directory. `fold` folds the journal of a run to its state. */
export const make = (
  files: FileSystem.FileSystem,
  directory: string,
  fold: (name: string) => Effect.Effect<RunState | undefined, PlatformError | StoreError>,
  clock: FileClock
) => {
  /** Returns heads with their current leases. In most lists no lease can be live. */
  const current = (heads: ReadonlyArray<KeptHead>): Effect.Effect<ReadonlyArray<RunHead>> =>
    Effect.map(heads.some(({ lease }) => (lease?.expiresAt ?? 0) > 0) ? clock : Effect.succeed(Infinity), (now) =>
      heads.map(({ head, lease, tags }) =>
        withTags(underLease(head, lease && { ...lease, isLive: lease.expiresAt > now }), tags)
      )
    )

  const known = new Map<string, Known>()
  const leases = filesOf(files, directory, "lease", Leases.read)
  const tags = filesOf(files, directory, "tags", Tags.read)
  const leftOut = leavingOut()
  let last: Look | undefined

  /** Returns the head of a run, folded from its journal if the one on disk is not that of the last record. */
  const kept = Effect.fnUntraced(function* ({ hasLease, hasTags, name }: Run) {
    const path = `${directory}/${name}`
    const before = known.get(name)
    let file = yield* Log.look(files, `${path}.jsonl`)
    let head = before?.identity === file.identity && before.size === file.size ? before.head : undefined
    if (head === undefined) {
      const written = yield* Head.read(files, path)
      file = yield* Log.look(files, `${path}.jsonl`)
      if (file.size === 0) return undefined
      head = written?.bytes === file.size && !written.isOlder ? written.head : undefined
    }
    if (head === undefined) {
      const state = yield* fold(name)
      if (state === undefined) return undefined
      head = journalHeadOf(state)
      yield* Effect.ignore(Head.write(files, path, head, file.size))
    }
    if (known.size < most || known.has(name)) known.set(name, { ...file, head })
    return { head, lease: hasLease ? yield* leases.of(name) : undefined, tags: hasTags ? yield* tags.of(name) : [] }
  })

  /** Returns the existing runs, and drops cached data of removed ones. */
  const runs = Effect.gen(function* () {
    const there = new Set(yield* files.readDirectory(directory))
    for (const name of known.keys()) if (!there.has(`${name}.jsonl`)) known.delete(name)
    leases.forget((name) => !there.has(`${name}.lease`))
    tags.forget((name) => !there.has(`${name}.tags`))
    return [...there].flatMap((file): ReadonlyArray<Run> => {
      const name = Name.ofFile(file)
      if (file !== `${name}.jsonl`) return []
      return [{ name, hasLease: there.has(`${name}.lease`), hasTags: there.has(`${name}.tags`) }]
    })
  })

  /** Returns all heads, or at least those of runs whose ids begin with a prefix. */
  const all = Effect.fnUntraced(function* (prefix = "") {
    const now = yield* Clock.currentTimeMillis
    const at = Option.getOrUndefined((yield* files.stat(directory)).mtime)?.getTime()
    const before = last?.at === at ? last : undefined
    const unknown = before?.unread ?? (yield* runs)
    const toRead = prefix === "" ? unknown : unknown.filter(({ name }) => Name.mayBegin(name, prefix))
    const found = yield* Effect.forEach(toRead, (run) => Effect.catch(kept(run), leftOut(run.name)), { concurrency: 8 })
    const heads = [...(before?.heads ?? []), ...found.flatMap((head) => head ?? [])]
    if (prefix !== "") return yield* current(heads)
    const unread = toRead.filter((_, index) => found[index] === undefined)
    // A directory that has just changed may change again without a new time, since some disks have a resolution of two
    // seconds.
    last = at !== undefined && at < now - 2_500 && heads.length <= most ? { at, heads, unread } : undefined
    return yield* current(heads)
  })

  /** Returns the current head of a run, with its lease and tags or without both. */
  const of = Effect.fnUntraced(function* (name: string, isWhole: boolean) {
    const found = yield* kept({ name, hasLease: isWhole, hasTags: isWhole })
    return found === undefined ? undefined : (yield* current([found]))[0]
  })

  return { of, all, leftOut }
}

/**
 * Reads the files of runs with an extension. Each change is appended to a file, so a file of the same size is not read
 * again.
 */
const filesOf = <A>(
  files: FileSystem.FileSystem,
  directory: string,
  extension: string,
  read: (files: FileSystem.FileSystem, path: string) => Effect.Effect<A, PlatformError>
) => {
  const known = new Map<string, KnownFile<A>>()
  const of = Effect.fnUntraced(function* (name: string) {
    const path = `${directory}/${name}`
    const before = known.get(name)
    const file = yield* Log.look(files, `${path}.${extension}`)
    if (before?.identity === file.identity && before.size === file.size) return before.value
    const value = yield* read(files, path)
    if (known.size < most || known.has(name)) known.set(name, { ...file, value })
    return value
  })
  const forget = (isGone: (name: string) => boolean): void => {
    for (const name of known.keys()) if (isGone(name)) known.delete(name)
  }
  return { of, forget }
}

/** Leaves out unreadable runs, and logs the reason once. Fails if the process can open no more files. */
const leavingOut = () => {
  const told = Name.cache(() => ({ why: "" }))
  return (name: string) => (error: StoreError | PlatformError) => {
    if (isOfAll(error)) return Effect.fail(error)
    const why = typeof error.reason === "string" ? error.reason : error.reason._tag
    const before = told(name)
    if (before.why === why) return Effect.undefined
    before.why = why
    return Effect.as(Effect.logWarning(`run '${name}' is left out`, error), undefined)
  }
}

/** A head, the lease of its run, live or not, and its tags. */
interface KeptHead {
  readonly head: JournalHead
  readonly lease: Leases.Kept | undefined
  readonly tags: ReadonlyArray<string>
}

/** Maximum number of heads kept in memory, at a few hundred bytes each. */
const most = 20_000

/** A head, and the journal it belongs to. */
interface Known {
  readonly identity: string
  readonly size: number
  readonly head: JournalHead
}

/** A value, and the file it was read from. */
interface KnownFile<A> {
  readonly identity: string
  readonly size: number
  readonly value: A
}

interface Run {
  readonly name: string
  readonly hasLease: boolean
  readonly hasTags: boolean
}

/** The contents of a directory when it last changed. */
interface Look {
  readonly at: number
  readonly heads: ReadonlyArray<KeptHead>
  readonly unread: ReadonlyArray<Run>
}

/** Returns true if a failure with one file affects every file. */
const isOfAll = ({ cause }: StoreError | PlatformError) => cause instanceof Error && /^E[MN]FILE/.test(cause.message)
