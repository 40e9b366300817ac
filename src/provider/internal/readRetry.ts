/** Retries calls of skills that only read. */

import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { CallError } from "../../Call.ts"
import type { Middleware } from "../../Middleware.ts"
import type { SkillRegistryShape } from "../../SkillRegistry.ts"

/** Options of `retryReads`. */
export interface ReadRetryOptions {
  /** The maximum number of calls, including the first. Default: 3. */
  readonly attempts?: number | undefined
  /** The pause before the first retry, doubled each time. Default: half a second. */
  readonly pause?: Duration.Input | undefined
  /** The failures to retry. Default: all except invalid input and defects. */
  readonly while?: ((error: CallError) => boolean) | undefined
}

/** Creates the middleware. A skill that writes, or that is not in the registry, is called once. */
export const retryReads = (skills: SkillRegistryShape, options: ReadRetryOptions): Middleware => {
  const attempts = options.attempts ?? 3
  const pause = Duration.fromInputUnsafe(options.pause ?? "500 millis")
  const mayPass = options.while ?? (({ name }: CallError) => !lasting.has(name))
  const isRead = (name: string | null) =>
    name !== null && Option.exists(skills.find(name), (skill) => skill.effects === "read")
  return {
    callTool: (run, next) => {
      if (run.call.kind !== "skill" || !isRead(run.call.name)) return next(run)
      const attempt = (made: number): ReturnType<typeof next> =>
        Effect.flatMap(next(run), (result) =>
          result.error === undefined || made >= attempts || !mayPass(result.error)
            ? Effect.succeed(result)
            : Effect.andThen(Effect.sleep(Duration.times(pause, 2 ** (made - 1))), attempt(made + 1))
        )
      return attempt(1)
    }
  }
}

const lasting: ReadonlySet<string> = new Set(["InvalidArguments", "Defect"])
