/**
 * Skills kept as code files, reloaded whole or not at all (BP-83, W-32).
 *
 * A source gives the files and tells when they change; this module turns what
 * they export into one registration. A file that cannot be used changes
 * nothing: the skills of before stay, and the problem is named. Who reads the
 * registry looks at one snapshot of it, so nobody ever sees half a reload.
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
import { latest } from "./internal/base/streams.ts"
import { SkillFilesInvalid } from "./KernelError.ts"
import type { AnySkill } from "./Skill.ts"
import { isSkill } from "./Skill.ts"
import { SkillRegistry } from "./SkillRegistry.ts"

export { SkillFilesInvalid }

/**
 * A code file: its name and what it exports.
 *
 * A skill, or a list of skills, may be the default export or a named one;
 * other exports are its own business.
 *
 * @category models
 * @since 0.1.0
 */
export interface SkillFile {
  readonly file: string
  readonly exports: { readonly [name: string]: unknown }
}

/**
 * Where code files come from.
 *
 * @category models
 * @since 0.1.0
 */
export interface FileSource {
  /** All files as they are now. */
  readonly load: Effect.Effect<ReadonlyArray<SkillFile>, SkillFilesInvalid>
  /** Tells, as often as it likes, that files may have changed. */
  readonly changes: Stream.Stream<unknown>
}

/**
 * What is loaded, and what was wrong with the last attempt, if anything.
 *
 * @category models
 * @since 0.1.0
 */
export interface Status {
  readonly skills: ReadonlyArray<string>
  readonly problem: SkillFilesInvalid | undefined
}

/**
 * What the loaded files can be asked.
 *
 * @category models
 * @since 0.1.0
 */
export interface SkillFilesShape {
  /** Loads everything again and gives the names of the skills. */
  readonly reload: Effect.Effect<ReadonlyArray<string>, SkillFilesInvalid>
  readonly status: Effect.Effect<Status>
  /** The status now and after every attempt, until the layer closes. Whoever is slow misses old ones, never the newest. */
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
 * Follows a source: its skills are registered now and again whenever it changes.
 *
 * Fails when the first load does. A later failure is logged and kept in the
 * status. Changes are gathered until none came for `debounce` (100 ms), so a
 * file that is still being written is not read halfway. What skills in files
 * need cannot be seen in types: name it as `R`.
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
        // One at a time: the older of two loads must not win.
        one.withPermits(1)
      )

      yield* source.changes.pipe(
        Stream.debounce(options?.debounce ?? "100 millis"),
        Stream.runForEach(() =>
          Effect.catch(reload, (problem) => Effect.logWarning(`skill files were not reloaded: ${problem.message}`))
        ),
        // Listening begins before the first load, so that no change falls between the two.
        Effect.forkScoped({ startImmediately: true })
      )
      yield* reload

      return SkillFiles.of({ reload, status: SubscriptionRef.get(state), changes: yield* latest(state) })
    })
  )

/**
 * Files that exist only here. Setting the reference is saving files.
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
      // The reference tells its value to whoever comes; only another one is news.
      changes: Stream.filter(SubscriptionRef.changes(files), (now) => now !== loaded)
    })
  })

const invalid = (file: string, reason: string) => new SkillFilesInvalid({ problems: [{ file, reason }] })

interface Collected<R> {
  readonly skills: ReadonlyArray<AnySkill<R>>
  /** The file each name came from. */
  readonly files: ReadonlyMap<string, string>
}

/** The skills of all files, or every problem they have. */
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

/** The skills a file exports; nothing where looking at its exports throws, as at one that is not made yet. */
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

/** What a skill of a file needs is what the layer was told. */
const isSkillOf = <R>(value: unknown): value is AnySkill<R> => isSkill(value)
