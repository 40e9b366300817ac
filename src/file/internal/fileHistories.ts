/**
 * Keeps the earlier messages of conversations in files that all runs share; see `SharedHistory`.
 *
 * `.histories/<chunk>` holds a chunk, and `<run>.<chunk>.history`, an empty file, says that a run refers to it. It is
 * created before the run and removed with it. Which chunks are needed follows from the names of these files and of the
 * chunks, so nothing is read to find those that are not.
 *
 * A chunk that is not needed is renamed before it is removed, and the names are listed again. A process that stores a
 * run meanwhile named the chunk before it looked for it: either the list has its name, and the chunk is kept, or the
 * process did not find the chunk and writes it again.
 */

import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import type { PlatformError } from "effect/PlatformError"
import * as Result from "effect/Result"
import { createHash, randomUUID } from "node:crypto"
import type { StoreError } from "../../KernelError.ts"
import type { Message } from "../../Message.ts"
import * as RunCodec from "../../RunCodec.ts"
import * as SharedHistory from "../../store-kit/SharedHistory.ts"
import { isTag, openOwn, readIfThere, syncDirectory } from "./disk.ts"
import * as Name from "./fileName.ts"

/** The chunks of a directory. */
export interface Histories {
  readonly cut: SharedHistory.Cut
  /** Stores the chunks of a run that are not stored yet. */
  readonly store: (
    runId: string,
    chunks: ReadonlyArray<SharedHistory.Chunk>
  ) => Effect.Effect<void, PlatformError | StoreError>
  /** Returns the messages that a text refers to. */
  readonly earlier: (text: string | undefined) => Effect.Effect<ReadonlyArray<Message>, PlatformError>
  /** Removes the chunks of removed runs that nothing refers to any more, given the names of their files. */
  readonly release: (markers: ReadonlyArray<string>) => Effect.Effect<void, PlatformError>
}

/** Creates the chunks of a directory. */
export const make = (files: FileSystem.FileSystem, directory: string, codec: RunCodec.RunCodec): Histories => {
  const folder = { files, directory, path: `${directory}/.histories` }
  return {
    cut: SharedHistory.make((text) => createHash("sha256").update(text).digest("hex")),
    store: (runId, chunks) => (chunks.length === 0 ? Effect.void : store(folder, runId, chunks)),
    earlier: Effect.fnUntraced(function* (text) {
      const wanted = text === undefined ? undefined : RunCodec.earlierIn(text)
      return wanted === undefined ? [] : yield* SharedHistory.read(wanted, (id) => read(folder, codec, id))
    }),
    release: (markers) => release(folder, markers)
  }
}

interface Folder {
  readonly files: FileSystem.FileSystem
  readonly directory: string
  readonly path: string
}

// ---------------------------------------------------------------- reading

const read = Effect.fnUntraced(function* ({ files, path }: Folder, codec: RunCodec.RunCodec, id: string) {
  // An id from a damaged journal leads out of no folder.
  if (!isChunk.test(id)) return undefined
  const text = (yield* readIfThere(files, `${path}/${id}`)) ?? (yield* readIfThere(files, `${path}/${id}${leaving}`))
  return text === undefined ? undefined : Result.getOrUndefined(codec.decodeChunk(text))
})

const isChunk = /^[0-9a-f]{64}\.(?:[0-9a-f]{16}|first)$/

/** The end of the name of a chunk that is being removed. */
const leaving = ".leaving"

// ---------------------------------------------------------------- writing

const store = Effect.fnUntraced(function* (
  folder: Folder,
  runId: string,
  chunks: ReadonlyArray<SharedHistory.Chunk>
): Effect.fn.Return<void, PlatformError | StoreError> {
  const { directory, files, path } = folder
  const last = chunks.at(-1)
  if (last === undefined) return
  yield* files.makeDirectory(path, { recursive: true, mode: 0o700 })
  yield* files.writeFileString(`${directory}/${markerOf(Name.make(runId), last.id)}`, "", { mode: 0o600 })
  // The chunks before a stored one are stored, too.
  let start = chunks.length
  while (start > 0 && !(yield* files.exists(`${path}/${chunks[start - 1]?.id}`))) start -= 1
  for (const chunk of chunks.slice(start)) yield* write(folder, chunk)
  if (start < chunks.length) yield* syncDirectory(files, `${path}/`)
})

const write = Effect.fnUntraced(function* ({ files, path }: Folder, chunk: SharedHistory.Chunk) {
  const text = yield* Effect.fromResult(SharedHistory.encode(chunk))
  const draft = `${path}/${randomUUID()}.tmp`
  const file = yield* openOwn(files, draft, { flag: "a", mode: 0o600 })
  yield* file.writeAll(new TextEncoder().encode(text))
  yield* file.sync
  yield* files.rename(draft, `${path}/${chunk.id}`)
}, Effect.scoped)

// ---------------------------------------------------------------- removing

const release = Effect.fnUntraced(function* (folder: Folder, markers: ReadonlyArray<string>) {
  const { files, path } = folder
  const left = markers.flatMap((file) => chunkIn(file) ?? [])
  if (left.length === 0) return
  const before = yield* names(folder)
  const kept = neededOf(before)
  const unneeded = [...chainOf(before.chunks, left)].filter((id) => !kept.has(id))
  // The newest first: the chunks before a stored one are always stored.
  for (const id of unneeded) yield* moved(files, `${path}/${id}`, `${path}/${id}${leaving}`)
  const needed = neededOf(yield* names(folder))
  for (const id of unneeded) {
    const old = `${path}/${id}${leaving}`
    yield* needed.has(id) ? moved(files, old, `${path}/${id}`) : files.remove(old, { force: true })
  }
})

const moved = (files: FileSystem.FileSystem, from: string, to: string) =>
  Effect.catchIf(files.rename(from, to), isTag("NotFound"), () => Effect.void)

interface Names {
  /** The ids of the stored chunks, also of those that are being removed. */
  readonly chunks: ReadonlyArray<string>
  /** The ids of the chunks to which runs refer. */
  readonly referred: ReadonlyArray<string>
}

const names = Effect.fnUntraced(function* ({ directory, files, path }: Folder): Effect.fn.Return<Names, PlatformError> {
  const referred = (yield* files.readDirectory(directory)).flatMap((file) => chunkIn(file) ?? [])
  const chunks = yield* Effect.catchIf(files.readDirectory(path), isTag("NotFound"), () => Effect.succeed([]))
  return { referred, chunks: chunks.map((file) => file.replace(leaving, "")).filter((id) => isChunk.test(id)) }
})

/** Returns the needed chunks: all of them if a process is still writing the one that its run refers to. */
const neededOf = ({ chunks, referred }: Names): ReadonlySet<string> => {
  const stored = new Set(chunks)
  return referred.every((id) => stored.has(id)) ? chainOf(chunks, referred) : stored
}

/** Returns chunks with those before them, each after those that follow it. */
const chainOf = (chunks: ReadonlyArray<string>, last: Iterable<string>): ReadonlySet<string> => {
  const byLink = Map.groupBy(chunks, SharedHistory.linkTo)
  const chain = new Set<string>()
  const found = [...last]
  for (let id = found.pop(); id !== undefined; id = found.pop()) {
    if (chain.has(id)) continue
    chain.add(id)
    // Of two chunks to which a name may refer, both are needed.
    found.push(...(byLink.get(SharedHistory.linkOf(id)) ?? []))
  }
  return chain
}

const markerOf = (name: string, chunk: string): string => `${name}.${chunk}.history`

const chunkIn = (file: string): string | undefined => /^[^.]+\.(.+)\.history$/.exec(file)?.[1]
