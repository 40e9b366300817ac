/**
 * A workspace on a backend: paths, texts, edits, searches, commands and background processes.
 */

import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import type { Backend } from "../WorkspaceBackend.ts"
import { WorkspaceError } from "../WorkspaceError.ts"
import { BackgroundProcesses } from "./backgroundProcesses.ts"
import { HeadAndTail } from "./commandOutput.ts"
import * as Problems from "./fileProblems.ts"
import { difference } from "./lineDifference.ts"
import * as Glob from "./pathGlob.ts"
import * as Reading from "./readSearch.ts"
import * as Edits from "./textEdit.ts"
import { decode, encode, type TextFile } from "./textFile.ts"
import * as Paths from "./workspacePath.ts"
import type {
  BeforeWrite,
  CommandResult,
  Listed,
  TextChange,
  WorkspaceOptions,
  WorkspaceShape
} from "./workspaceType.ts"

/** Creates a workspace. Background processes end with the scope. */
export const make = Effect.fnUntraced(function* (
  backend: Backend,
  options: WorkspaceOptions = {}
): Effect.fn.Return<WorkspaceShape, never, Scope.Scope> {
  const files = filesOf(backend, options)
  const commands = commandsOf(backend, options, yield* Effect.scope)
  const resolve = (path: string) => Paths.resolve(backend.root, path)
  return {
    root: backend.root,
    ...files,
    ...commands,
    list: (path) => Effect.flatMap(resolve(path), backend.entries),
    glob: Effect.fnUntraced(function* (pattern, { limit = 1_000, path = "" } = {}) {
      const folder = yield* resolve(path)
      const fits = yield* Glob.compile(pattern)
      const inside = folder === "" ? 0 : folder.length + 1
      return yield* firstOf(
        Stream.filter(Reading.files(backend, folder), (file) => fits(file.slice(inside))),
        limit
      )
    }),
    grep: Effect.fnUntraced(function* (pattern, { glob, ignoreCase = false, limit = 1_000, path = "" } = {}) {
      const search = { pattern, ignoreCase, glob, path: yield* resolve(path) }
      return yield* firstOf(backend.search?.(search) ?? Reading.search(backend, search), limit)
    }),
    contents: (paths, limits) =>
      Effect.flatMap(
        Effect.forEach(paths, resolve),
        (resolved) => backend.contents?.(resolved, limits) ?? Reading.contents(backend, resolved, limits)
      ),
    snapshot: Effect.flatMap(Stream.runCollect(Reading.files(backend, "")), backend.signatures)
  }
})

const firstOf = <A>(found: Stream.Stream<A, WorkspaceError>, limit: number): Effect.Effect<Listed<A>, WorkspaceError> =>
  Effect.map(Stream.runCollect(Stream.take(found, limit + 1)), (items) => ({
    items: items.slice(0, limit),
    isCut: items.length > limit
  }))

// ---------------------------------------------------------------- files

const filesOf = (
  backend: Backend,
  { maxFileBytes = 10 * 1024 * 1024, writable }: WorkspaceOptions
): Pick<WorkspaceShape, "edit" | "read" | "restore" | "write"> => {
  // One change at a time, so that none is lost between reading and writing.
  const turn = Semaphore.makeUnsafe(1)
  const isWritable = Paths.writablePaths(writable)
  const existing = (path: string) =>
    Effect.catchIf(
      backend.read(path, maxFileBytes),
      ({ reason }) => reason === "not_found",
      () => Effect.undefined
    )
  const writablePath = Effect.fnUntraced(function* (given: string) {
    const path = yield* Paths.resolve(backend.root, given)
    if (path === "") return yield* Problems.notFile(path)
    return isWritable(path) ? path : yield* Problems.readOnly(path)
  })
  const change = Effect.fnUntraced(function* <E, R>(
    path: string,
    before: Uint8Array | undefined,
    after: Uint8Array,
    keep: BeforeWrite<E, R> | undefined
  ): Effect.fn.Return<TextChange, WorkspaceError | E, R> {
    if (after.length > maxFileBytes) return yield* Problems.tooLarge(path, maxFileBytes)
    const changed = { path, before, after }
    if (keep !== undefined) yield* keep(changed)
    yield* backend.write(path, after)
    const [old, now] = [before, after].map((bytes) => (bytes === undefined ? "" : decode(bytes)?.text))
    return { ...changed, places: 1, difference: old === undefined || now === undefined ? "" : difference(old, now) }
  })
  return {
    read: Effect.fnUntraced(function* (given) {
      const path = yield* Paths.resolve(backend.root, given)
      const bytes = yield* backend.read(path, maxFileBytes)
      const text = decode(bytes)?.text
      return text === undefined ? { _tag: "Binary", path, bytes } : { _tag: "Text", path, text, bytes }
    }),
    write: (given, content, keep) =>
      turn.withPermit(
        Effect.gen(function* () {
          const path = yield* writablePath(given)
          const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content
          return yield* change(path, yield* existing(path), bytes, keep)
        })
      ),
    edit: (given, edit, keep) =>
      turn.withPermit(
        Effect.gen(function* () {
          const path = yield* writablePath(given)
          const before = yield* backend.read(path, maxFileBytes)
          const file = decode(before)
          if (file === undefined) return yield* noText(path)
          const { places, text } = yield* Edits.apply(path, file, edit)
          const done = yield* change(path, before, yield* encoded(path, text, file), keep)
          return { ...done, places }
        })
      ),
    restore: (contents) =>
      turn.withPermit(
        Effect.forEach(
          contents,
          Effect.fnUntraced(function* ([given, bytes]) {
            const path = yield* writablePath(given)
            if (bytes !== undefined) return yield* backend.write(path, bytes)
            if ((yield* existing(path)) !== undefined) yield* backend.remove(path)
          }),
          { discard: true }
        )
      )
  }
}

const noText = (path: string) => new WorkspaceError({ reason: "binary", detail: `${path} holds no text` })

const encoded = (path: string, text: string, file: TextFile): Effect.Effect<Uint8Array, WorkspaceError> => {
  const bytes = encode(text, file)
  return bytes === undefined
    ? Effect.fail(new WorkspaceError({ reason: "invalid", detail: `${path} has an encoding without these characters` }))
    : Effect.succeed(bytes)
}

// ---------------------------------------------------------------- commands

const commandsOf = (
  { spawn = unavailable }: Backend,
  { maxProcesses = 8, timeout = "2 minutes" }: WorkspaceOptions,
  scope: Scope.Scope
): Pick<WorkspaceShape, "output" | "run" | "start" | "stop"> => {
  const background = new BackgroundProcesses(spawn, maxProcesses, scope)
  return {
    run: (command, options) => run(spawn, command, Duration.fromInputUnsafe(options?.timeout ?? timeout)),
    start: (command) => Effect.andThen(requireCommand(command), background.start(command)),
    output: (id, offset = 0) => background.output(id, offset),
    stop: (id) => background.stop(id)
  }
}

const unavailable = () =>
  Effect.fail(new WorkspaceError({ reason: "unavailable", detail: "commands are not available in this workspace" }))

const run = Effect.fnUntraced(function* (
  spawn: NonNullable<Backend["spawn"]>,
  command: string,
  timeout: Duration.Duration
): Effect.fn.Return<CommandResult, WorkspaceError, Scope.Scope> {
  yield* requireCommand(command)
  const process = yield* spawn(command)
  const output = new HeadAndTail()
  const reader = yield* Effect.forkScoped(
    Stream.runForEach(process.output, (chunk) => Effect.sync(() => output.add(chunk)))
  )
  const exitCode = yield* Effect.timeoutOption(process.exitCode, timeout)
  if (Option.isNone(exitCode)) return { output: output.text }
  yield* Fiber.join(reader)
  return { output: output.text, exitCode: exitCode.value }
}, Effect.scoped)

const requireCommand = (command: string): Effect.Effect<void, WorkspaceError> =>
  command.trim() === "" || command.includes("\0") || command.length > maxCommand
    ? Effect.fail(
        new WorkspaceError({ reason: "invalid", detail: `a command is a text of 1 to ${maxCommand} characters` })
      )
    : Effect.void

/** Systems allow 128 KiB for one argument. */
const maxCommand = 30_000
