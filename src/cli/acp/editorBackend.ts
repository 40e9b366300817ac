/**
 * A folder whose files and commands go through the editor where it offers them: the agent reads what the person sees, and
 * changes appear in open files.
 *
 * The folder itself decides which paths are inside and which files are texts. Everything else, such as files that are
 * reached over links, media and searches, goes to the disk.
 */

import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import type * as AcpServe from "../../acp/AcpServe.ts"
import type { Backend, Process } from "../../workspace/Workspace.ts"
import { WorkspaceError } from "../../workspace/WorkspaceError.ts"

/** Puts an editor before a folder. */
export const throughEditor = (editor: AcpServe.Editor, { hasTerminal }: { readonly hasTerminal: boolean }) =>
  Effect.fnUntraced(function* (backend: Backend): Effect.fn.Return<Backend, never, FileSystem.FileSystem> {
    const fs = yield* FileSystem.FileSystem
    const { readTextFile, startTerminal, writeTextFile } = editor
    /** Returns the absolute path of a text file that is reached without links, and its bytes. */
    const textFile = Effect.fnUntraced(function* (path: string, maxBytes: number) {
      const file = `${backend.root}/${path}`
      const bytes = yield* backend.read(path, maxBytes)
      const real = yield* Effect.orElseSucceed(fs.realPath(file), () => undefined)
      return { file, bytes, text: real === file ? textOf(bytes) : undefined }
    })
    const read: Backend["read"] = Effect.fnUntraced(function* (path, maxBytes) {
      const { bytes, file, text } = yield* textFile(path, maxBytes)
      if (readTextFile === undefined || text === undefined) return bytes
      const shown = yield* Effect.orElseSucceed(readTextFile(file), () => text)
      // An editor may show other line ends and no byte order mark.
      const after = plain(shown) === plain(text) ? bytes : new TextEncoder().encode(shown)
      return after.length > maxBytes ? bytes : after
    })
    const write: Backend["write"] = Effect.fnUntraced(function* (path, bytes) {
      const before = yield* Effect.orElseSucceed(textFile(path, maxWritten), () => undefined)
      const text = textOf(bytes)
      if (writeTextFile === undefined || before?.text === undefined || text === undefined) {
        return yield* backend.write(path, bytes)
      }
      yield* Effect.mapError(writeTextFile(before.file, text), failed)
    })
    return {
      ...backend,
      read,
      write,
      ...(startTerminal === undefined || !hasTerminal
        ? {}
        : { spawn: (command) => spawn(startTerminal, backend.root, command) })
    }
  })

/** Bytes of a file that is written through the editor. */
const maxWritten = 10 * 1024 * 1024

const failed = ({ message }: { readonly message: string }) =>
  new WorkspaceError({ reason: "io", detail: `the editor failed: ${message}` })

const textOf = (bytes: Uint8Array): string | undefined =>
  bytes.includes(0)
    ? undefined
    : Result.getOrUndefined(Result.try(() => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes)))

const plain = (text: string): string => text.replace(/^\ufeff/, "").replaceAll("\r\n", "\n")

/** Runs a command in a terminal, with the environment that commands of a folder have. */
const spawn = Effect.fnUntraced(function* (
  startTerminal: NonNullable<AcpServe.Editor["startTerminal"]>,
  cwd: string,
  command: string
) {
  const kept = ["PATH", "HOME", "LANG", "LC_ALL", "TMPDIR"].flatMap((name) => {
    const value = process.env[name]
    return value === undefined ? [] : [`${name}=${value}`]
  })
  const args = ["-i", ...kept, "TERM=dumb", "CI=1", "bash", "--norc", "-c", command]
  const terminal = yield* Effect.mapError(startTerminal({ program: "env", args, cwd, command }), failed)
  const exit = yield* Effect.forkScoped(Effect.mapError(terminal.exitCode, failed))
  const output: Process["output"] = Stream.callback((queue) =>
    Effect.gen(function* () {
      let before = ""
      let hasExited = false
      while (true) {
        const { hasEnded, text } = yield* Effect.mapError(terminal.output, failed)
        const more = newIn(before, text)
        before = text
        if (more !== "") yield* Queue.offer(queue, new TextEncoder().encode(more))
        if (hasEnded || hasExited) return yield* Queue.end(queue)
        hasExited = Option.isSome(yield* Effect.timeoutOption(Fiber.await(exit), "250 millis"))
      }
    })
  )
  return { output, exitCode: Fiber.join(exit) }
})

/** Returns what an output has more than before. The editor may have dropped its beginning. */
const newIn = (before: string, text: string): string => {
  if (text.startsWith(before)) return text.slice(before.length)
  const end = before.slice(-1_000)
  const at = text.lastIndexOf(end)
  return at === -1 ? text : text.slice(at + end.length)
}
