/**
 * Files in memory. There are no links, and a folder exists as long as a file is in it.
 */

import * as Effect from "effect/Effect"
import type { Backend, Entry } from "../WorkspaceBackend.ts"
import { WorkspaceError } from "../WorkspaceError.ts"
import { spawnIn } from "./justBash.ts"
import * as Problems from "./fileProblems.ts"
import { folderOf } from "./workspacePath.ts"

const root = "/workspace"

/** Creates a backend with these files, by their paths below the root. */
export const memoryBackend = (given: { readonly [path: string]: string | Uint8Array }): Backend => {
  const files = new MemoryFiles()
  for (const [path, content] of Object.entries(given)) {
    files.set(path, typeof content === "string" ? new TextEncoder().encode(content) : content.slice())
  }
  return {
    root,
    read: (path, maxBytes) =>
      Effect.suspend((): Effect.Effect<Uint8Array, WorkspaceError> => {
        const bytes = files.get(path)
        if (bytes === undefined)
          return Effect.fail(files.isFolder(path) ? Problems.notFile(path) : Problems.absent(path))
        return bytes.length > maxBytes ? Effect.fail(Problems.tooLarge(path, maxBytes)) : Effect.succeed(bytes.slice())
      }),
    write: (path, bytes) =>
      Effect.suspend(() => {
        if (files.isFolder(path)) return Effect.fail(Problems.notFile(path))
        for (let folder = folderOf(path); folder !== ""; folder = folderOf(folder)) {
          if (files.get(folder) !== undefined) return Effect.fail(Problems.notFolder(folder))
        }
        files.set(path, bytes.slice())
        return Effect.void
      }),
    remove: (path) => Effect.suspend(() => (files.delete(path) ? Effect.void : Effect.fail(Problems.absent(path)))),
    entries: (path) =>
      Effect.suspend(() => {
        if (files.isFolder(path)) return Effect.succeed(files.entries(path))
        return Effect.fail(files.get(path) === undefined ? Problems.absent(path) : Problems.notFolder(path))
      }),
    signatures: (paths) =>
      Effect.sync(
        () => new Map(paths.flatMap((path) => (files.get(path) === undefined ? [] : [[path, files.signature(path)]])))
      ),
    spawn: (command) => spawnIn(root, files, command)
  }
}

/** Files by their paths. */
export class MemoryFiles {
  readonly #files = new Map<string, { readonly bytes: Uint8Array; readonly version: number }>()
  #version = 0

  get(path: string): Uint8Array | undefined {
    return this.#files.get(path)?.bytes
  }

  set(path: string, bytes: Uint8Array): void {
    this.#files.set(path, { bytes, version: ++this.#version })
  }

  delete(path: string): boolean {
    return this.#files.delete(path)
  }

  get paths(): ReadonlyArray<string> {
    return [...this.#files.keys()]
  }

  signature(path: string): string {
    return String(this.#files.get(path)?.version)
  }

  isFolder(path: string): boolean {
    return path === "" || this.paths.some((file) => file.startsWith(`${path}/`))
  }

  entries(folder: string): ReadonlyArray<Entry> {
    const start = folder === "" ? "" : `${folder}/`
    const kinds = new Map<string, Entry["kind"]>()
    for (const path of this.paths) {
      if (!path.startsWith(start)) continue
      const [name = "", ...rest] = path.slice(start.length).split("/")
      kinds.set(name, rest.length === 0 ? "file" : "folder")
    }
    return [...kinds].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, kind]) => ({ name, kind }))
  }
}
