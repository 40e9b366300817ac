/**
 * Loads skills from a folder of code files with `import`, and watches the folder.
 *
 * Every `.ts`, `.mts`, `.js` and `.mjs` file of the folder is a skill file, except type declarations, tests, and names
 * that begin with `_` or `.`. Globs select among them and include subfolders; a folder whose name begins with `_` or
 * `.`, and `node_modules`, are left out. A changed file is imported again. An unchanged one is not, even if it was
 * saved again, so its module variables live until it is edited. Modules that a file imports are loaded once by the
 * runtime and stay. The runtime never frees an imported version: each edit costs some KiB until the process ends.
 * Loading a file takes at most `Limits.skillTimeout`. The code runs with all rights of the process.
 *
 * @since 0.1.0
 */

import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Hash from "effect/Hash"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import * as Module from "node:module"
import * as Read from "../kit/files.ts"
import { redact } from "../kit/redact.ts"
import { Limits } from "../Limits.ts"
import { Redaction } from "../Redaction.ts"
import type { FileSource, SkillFile, SkillFiles } from "./SkillFiles.ts"
import { layer as layerOf, SkillFilesInvalid } from "./SkillFiles.ts"
import type { SkillRegistry } from "../SkillRegistry.ts"
import * as FileGlob from "./internal/fileGlob.ts"

/**
 * Options of the loader.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  readonly directory: string
  /**
   * Globs of paths below the folder, such as `tools/**` or `{billing,sales}/*.ts`: `**` matches any number of folders,
   * `*` and the others match within one name. Default: `*`, which matches the files of the folder itself.
   *
   * @since 0.1.0
   */
  readonly files?: ReadonlyArray<string> | undefined
  /** Time without changes before files are loaded again. Default: 100 ms. */
  readonly debounce?: Duration.Input | undefined
}

/**
 * Returns the files of a folder, for `SkillFiles.layer`. `globs` selects among them (default: `*`). An invalid glob
 * fails the load.
 *
 * @category constructors
 * @since 0.1.0
 */
export const source = (
  directory: string,
  globs: ReadonlyArray<string> = ["*"]
): Effect.Effect<FileSource, never, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const known = new Map<string, Loaded>()
    const chosen = FileGlob.compile(globs)
    const isDeep = Result.isSuccess(chosen) && chosen.success.isDeep

    const load = Effect.fnUntraced(function* (name: string) {
      const file = path.join(directory, name)
      const { fetchedBytes } = yield* Limits
      const { mtime } = yield* fs.stat(file)
      const saved = Option.match(mtime, { onNone: () => 0, onSome: (time) => time.getTime() })
      const text = yield* Effect.mapError(Read.text(fs, file, fetchedBytes, yield* fs.realPath(directory)), (refusal) =>
        typeof refusal === "string" ? new ImportFailed(`is ${refusal}`) : refusal
      )
      const before = known.get(name)
      if (before?.text === text) return before
      const url = yield* path.toFileUrl(path.resolve(file))
      // The time alone misses two saves within its precision; the text alone would keep an import that failed for other
      // reasons.
      url.searchParams.set("v", `${saved}-${Hash.string(text)}`)
      const exports = yield* importModule(url.href, text)
      return { file: name, text, exports }
    })

    const loadAll = Effect.gen(function* () {
      const { matches } = yield* Effect.mapError(Effect.fromResult(chosen), ({ glob, reason }) => invalid(glob, reason))
      const names = (yield* fs.readDirectory(directory, { recursive: isDeep }))
        .map((name) => name.replaceAll(path.sep, "/"))
        .filter((name) => isSkillFile(name) && matches(name))
        .toSorted()
      const redactor = yield* Redaction
      // An error may hold data that the file read.
      const clean = (text: string) => redact(redactor === undefined ? text : redactor.text(text))
      const problems: Array<{ readonly file: string; readonly reason: string }> = []
      const loaded: Array<Loaded> = []
      for (const name of names) {
        const result = yield* Effect.result(load(name))
        if (result._tag === "Success") loaded.push(result.success)
        else problems.push({ file: name, reason: clean(result.failure.message) })
      }
      if (problems.length > 0) return yield* new SkillFilesInvalid({ problems })
      known.clear()
      for (const file of loaded) known.set(file.file, file)
      return loaded
    })

    return {
      load: Effect.catchTag(loadAll, "PlatformError", ({ reason }) =>
        Effect.fail(invalid(directory, `cannot be read (${reason._tag})`))
      ),
      changes: follow(fs, directory, isDeep)
    }
  })

const invalid = (file: string, reason: string) => new SkillFilesInvalid({ problems: [{ file, reason }] })

/** Emits when a folder changes. If it is removed or moved, waits until it is back. */
const follow = (fs: FileSystem.FileSystem, directory: string, recursive: boolean): Stream.Stream<unknown> =>
  Stream.suspend(() => {
    let isLost = false
    const look = Effect.map(fs.stat(directory), identityOf)
    const watched = Effect.map(look, (identity) => {
      // A watcher follows its original folder, and reports its removal like any other change.
      const events = fs.watch(directory, { recursive }).pipe(
        Stream.mapEffect(() =>
          Effect.filterOrFail(
            look,
            (now) => now === identity,
            () => new FolderLost()
          )
        )
      )
      if (!isLost) return events
      isLost = false
      // No event reported the entries that are already there.
      return Stream.concat(Stream.succeed("found"), events)
    })
    return Stream.unwrap(watched).pipe(
      Stream.tapError((error) => {
        if (isLost) return Effect.void
        isLost = true
        return Effect.logWarning(`watching ${directory} failed: ${error.message}`)
      }),
      Stream.retry(Schedule.spaced("1 second")),
      Stream.orDie
    )
  })

/** Identifies a folder by its inode, which may be reused, and its creation time. */
const identityOf = ({ birthtime, dev, ino }: FileSystem.File.Info): string =>
  [dev, Option.getOrUndefined(ino), Option.getOrUndefined(birthtime)?.getTime()].join(":")

class FolderLost extends Error {
  override readonly message = "it is another folder now"
}

/**
 * Registers the skills of a folder and follows its changes.
 *
 * The services that the skills need are not visible in types: name them as `R`.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <R = never>(
  options: Options
): Layer.Layer<SkillFiles, SkillFilesInvalid, SkillRegistry | FileSystem.FileSystem | Path.Path | R> =>
  Layer.unwrap(
    Effect.map(source(options.directory, options.files), (files) =>
      layerOf<R>(files, options.debounce === undefined ? {} : { debounce: options.debounce })
    )
  )

interface Loaded extends SkillFile {
  readonly text: string
}

const isSkillFile = (path: string): boolean =>
  /\.m?[jt]s$/.test(path) && !/\.(?:d|test|spec)\.m?[jt]s$/.test(path) && !/(?:^|\/)(?:[._]|node_modules\/)/.test(path)

/**
 * Imports a module from the text that was read, so that a file put in its place later is not run. Fails after a time
 * limit.
 */
const importModule = (url: string, text: string) =>
  Effect.flatMap(Limits, (limits) =>
    Effect.acquireUseRelease(
      Effect.sync(() => serve(url, text)),
      () =>
        Effect.tryPromise({
          try: (): Promise<{ readonly [name: string]: unknown }> => import(url),
          catch: failure
        }),
      (hooks) => Effect.sync(() => hooks?.deregister())
    ).pipe(
      Effect.timeoutOrElse({
        duration: limits.skillTimeout,
        orElse: () => Effect.fail(new ImportFailed(`did not load within ${Duration.toMillis(limits.skillTimeout)} ms`))
      })
    )
  )

/** Serves the text of a module to its import. Runtimes without module hooks read the file once more. */
const serve = (url: string, source: string): Module.ModuleHooks | undefined =>
  Module.registerHooks?.({
    load: (asked, context, next) => ({ ...next(asked, context), ...(asked === url ? { source } : {}) })
  })

/** Describes a value that a module threw, whose getters may throw, too. */
const failure = (error: unknown): ImportFailed =>
  Result.getOrElse(
    Result.try(() => new ImportFailed(error instanceof Error ? error.message : String(error))),
    () => new ImportFailed("threw what cannot be read")
  )

class ImportFailed extends Error {
  readonly _tag = "ImportFailed"
}
