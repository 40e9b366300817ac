/**
 * The scorers of `--scorer`: `exact`, `contains`, `regex=PATTERN`, `schema=FILE`, `similarity=0.8`, `judge=MODEL`, or a
 * module of the user.
 */

import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { outputSchema } from "../../file/AgentFile.ts"
import * as Read from "../../kit/files.ts"
import { Limits } from "../../Limits.ts"
import * as Evaluation from "../../testing/Evaluation.ts"
import { asUsage, unreadable, usage } from "../exit.ts"
import * as Models from "../models.ts"
import * as Text from "../terminalText.ts"
import { exportsOf } from "../userModules.ts"

/** Options of scorers from other flags. */
interface Options {
  readonly criteria: string | undefined
}

/** Returns the scorer of a flag. */
export const read = Effect.fnUntraced(function* (flag: string, { criteria }: Options) {
  const [, name = "", parameter] = /^([a-z]+)(?:=(.*))?$/s.exec(flag) ?? []
  switch (name) {
    case "exact":
      return Evaluation.exact
    case "contains":
      return Evaluation.contains
    case "regex":
      return yield* Effect.mapError(Effect.fromResult(Evaluation.regex(parameter)), (error) =>
        asUsage(error, "regex: ")
      )
    case "similarity":
      return Evaluation.similarity(parameter === undefined ? undefined : yield* shareOf(parameter))
    case "schema":
      return Evaluation.schema(yield* schemaIn(parameter))
    case "judge": {
      if (parameter === undefined) return yield* usage("judge needs a model: --scorer judge=<provider>/<model>")
      return Evaluation.judge({ ...(yield* Models.resolve(parameter)), criteria })
    }
    default:
      return yield* ownScorer(flag)
  }
})

const decodeShare = Schema.decodeUnknownEffect(
  Schema.FiniteFromString.check(Schema.isBetween({ minimum: 0, maximum: 1 }))
)

const shareOf = (text: string) =>
  Effect.mapError(decodeShare(text), () => usage("similarity takes a number from 0 to 1: --scorer similarity=0.8"))

const decodeJson = Schema.decodeUnknownEffect(Schema.fromJsonString(Schema.Json))

const schemaIn = Effect.fnUntraced(function* (file: string | undefined) {
  if (file === undefined) return yield* usage("schema needs a file with a JSON Schema: --scorer schema=answer.json")
  const fs = yield* FileSystem.FileSystem
  const { fetchedBytes } = yield* Limits
  const name = Text.excerpt(file, 80)
  const text = yield* Effect.mapError(Read.text(fs, file, fetchedBytes), (refusal) => unreadable(name, refusal))
  const json = yield* Effect.mapError(decodeJson(text), () => usage(`${name} is not JSON`))
  return yield* Effect.mapError(Effect.fromResult(outputSchema(json)), (error) => asUsage(error, `${name}: `))
})

const Judged = Schema.Union([
  Schema.Boolean,
  Schema.Finite,
  Schema.Struct({ score: Schema.Finite, reason: Schema.optionalKey(Schema.String) })
])

const decodeJudged = Schema.decodeUnknownResult(Judged)

/** Returns the scorer of a module: its default export, a function of the answer and the case, possibly async. */
const ownScorer = Effect.fnUntraced(function* (file: string) {
  const { default: own } = yield* exportsOf(file)
  if (typeof own !== "function") {
    return yield* usage(`${Text.excerpt(file, 80)} must export a function by default: (answer, question) => score`)
  }
  const name = file.replace(/^.*[/\\]|\.[^.]*$/g, "")
  return Evaluation.scorer(name, (answer, question) =>
    Effect.tryPromise({
      try: async (): Promise<unknown> => await own(answer, question),
      catch: (error) => ({ message: error instanceof Error ? error.message : String(error) })
    }).pipe(
      Effect.flatMap((judged) =>
        Result.match(decodeJudged(judged), {
          onFailure: () => Effect.fail({ message: "it returned neither a boolean, a score nor { score, reason }" }),
          onSuccess: (judged) => Effect.succeed<Evaluation.Judged>(judged)
        })
      )
    )
  )
})
