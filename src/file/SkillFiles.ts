/**
 * Skills in code files, reloaded completely or not at all.
 *
 * A source loads the files and announces changes; their exports become one registration. If a file is unusable, the
 * previous skills stay and the problem is reported.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import * as SubscriptionRef from "effect/SubscriptionRef"
import { latest } from "../kit/streams.ts"
import { SkillFilesInvalid } from "../KernelError.ts"
import type { AnySkill } from "../Skill.ts"
import { isSkill } from "../Skill.ts"
import { SkillRegistry } from "../SkillRegistry.ts"

export { SkillFilesInvalid }

/**
 * A code file and its exports.
 *
 * Skills and lists of skills may be default or named exports. Other exports are ignored.
 *
 * @category models
 * @since 0.1.0
 */
export interface SkillFile {
  readonly file: string
  readonly exports: { readonly [name: string]: unknown }
}

/**
 * A source of code files.
 *
 * @category models
 * @since 0.1.0
 */
export interface FileSource {
  /** Loads all files. */
  readonly load: Effect.Effect<ReadonlyArray<SkillFile>, SkillFilesInvalid>
  /** Emits when files may have changed. */
  readonly changes: Stream.Stream<unknown>
}

/**
 * The loaded skills, and the problem of the last attempt, if any.
 *
 * @category models
 * @since 0.1.0
 */
export interface Status {
  readonly skills: ReadonlyArray<string>
  readonly problem: SkillFilesInvalid | undefined
}

/**
 * The service of `SkillFiles`.
 *
 * @category models
 * @since 0.1.0
 */
export interface SkillFilesShape {
  /** Loads all files again. Returns the names of the skills. */
  readonly reload: Effect.Effect<ReadonlyArray<string>, SkillFilesInvalid>
  readonly status: Effect.Effect<Status>
  /**
   * Emits the current status, then the status after every attempt, until the layer closes. Slow readers miss old
   * values, never the newest.
   */
  readonly changes: Stream.Stream<Status>
}

/**
 * The code files of an application.
 *
 * @category services
 * @since 0.1.0
 */
export class SkillFiles extends Context.Service<SkillFiles, SkillFilesShape>()("kernai/SkillFiles") {}

/**
 * Registers the skills of a source, and registers them again whenever it changes.
 *
 * Fails if the first load fails. Later failures are logged and kept in the status. Changes are collected until there
 * was none for `debounce` (default: 100 ms), so that files are not read while they are written. The services the skills
 * require cannot be inferred: pass them as `R`.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <R = never>(
  source: FileSource,
  options?: { readonly debounce?: Duration.Input | undefined }
): Layer.Layer<SkillFiles, SkillFilesInvalid, SkillRegistry | R> =>
  Layer.effect(
    SkillFiles,
    Effect.gen(function* () {
      const registry = yield* SkillRegistry
      const registration = yield* Effect.orDie(registry.registerSource<R>({ source: "native", skills: [] }))
      const state = yield* SubscriptionRef.make<Status>({ skills: [], problem: undefined })
      const one = yield* Semaphore.make(1)

      const attempt = Effect.gen(function* () {
        const { files, skills } = yield* Effect.fromResult(collect<R>(yield* source.load))
        yield* Effect.mapError(registration.replace(skills), (error) =>
          invalid(files.get(error.name) ?? "", error.message)
        )
        const names = skills.map((skill) => skill.name)
        yield* SubscriptionRef.set(state, { skills: names, problem: undefined })
        return names
      })
      const reload = attempt.pipe(
        Effect.tapError((problem) => SubscriptionRef.update(state, ({ skills }) => ({ skills, problem }))),
        // One load at a time, so that an older one cannot win.
        one.withPermits(1)
      )

      yield* source.changes.pipe(
        Stream.debounce(options?.debounce ?? "100 millis"),
        Stream.runForEach(() =>
          Effect.catch(reload, (problem) => Effect.logWarning(`skill files were not reloaded: ${problem.message}`))
        ),
        // Subscribed before the first load, so that no change is missed.
        Effect.forkScoped({ startImmediately: true })
      )
      yield* reload

      return SkillFiles.of({ reload, status: SubscriptionRef.get(state), changes: yield* latest(state) })
    })
  )

/**
 * Registers the skills of files in memory. Setting the reference saves the files.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerMemory = <R = never>(
  files: SubscriptionRef.SubscriptionRef<ReadonlyArray<SkillFile>>
): Layer.Layer<SkillFiles, SkillFilesInvalid, SkillRegistry | R> =>
  Layer.suspend(() => {
    let loaded: ReadonlyArray<SkillFile> | undefined
    return layer<R>({
      load: Effect.map(SubscriptionRef.get(files), (now) => (loaded = now)),
      // The reference emits its current value to every subscriber; only a different one is a change.
      changes: Stream.filter(SubscriptionRef.changes(files), (now) => now !== loaded)
    })
  })

const invalid = (file: string, reason: string) => new SkillFilesInvalid({ problems: [{ file, reason }] })

interface Collected<R> {
  readonly skills: ReadonlyArray<AnySkill<R>>
  /** The file that defines each skill, by name. */
  readonly files: ReadonlyMap<string, string>
}

/** Returns the skills of all files, or fails with every problem. */
const collect = <R>(loaded: ReadonlyArray<SkillFile>): Result.Result<Collected<R>, SkillFilesInvalid> => {
  const skills: Array<AnySkill<R>> = []
  const files = new Map<string, string>()
  const problems: Array<{ readonly file: string; readonly reason: string }> = []
  for (const { exports, file } of loaded) {
    const found = skillsOf<R>(exports)
    if (found === undefined) problems.push({ file, reason: "its exports cannot be read" })
    if (found?.size === 0) problems.push({ file, reason: "exports no skill" })
    for (const skill of found ?? []) {
      const other = files.get(skill.name)
      if (other !== undefined) problems.push({ file, reason: `'${skill.name}' is already defined in ${other}` })
      files.set(skill.name, file)
      skills.push(skill)
    }
  }
  return problems.length === 0 ? Result.succeed({ skills, files }) : Result.fail(new SkillFilesInvalid({ problems }))
}

/** Returns the skills a file exports, or undefined if reading its exports throws, such as in an import cycle. */
const skillsOf = <R>(exports: SkillFile["exports"]): ReadonlySet<AnySkill<R>> | undefined =>
  Result.getOrUndefined(
    Result.try(
      () =>
        new Set(
          Object.values(exports)
            .flat()
            .filter(isSkillOf<R>)
        )
    )
  )

/** The caller of the layer declares which services the skills of its files require. */
const isSkillOf = <R>(value: unknown): value is AnySkill<R> => isSkill(value)
