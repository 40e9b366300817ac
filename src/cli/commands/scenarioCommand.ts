/**
 * `kernai scenario`: runs conversations that are files, one by one or with many models.
 */

import { Command } from "effect/cli"
import * as Effect from "effect/Effect"
import { type CommandFailed, usage } from "../exit.ts"
import { excerpt } from "../terminalText.ts"
import { defaultLog, runFlags, matrixFlags } from "./scenarioFlags.ts"

const run = Command.make(
  "run",
  runFlags,
  Effect.fnUntraced(function* (input) {
    if (!input.logs && input.log !== undefined) return yield* usage("--no-logs and --log cannot be used together")
    const model = input.model ?? (yield* ofEnvironment(process.env))
    const { runScenarios } = yield* Effect.promise(() => import("../runScenarios.ts"))
    yield* runScenarios({ ...input, model, log: input.logs ? (input.log ?? defaultLog) : undefined })
  })
).pipe(
  Command.withDescription(
    "Run scenarios, and show each as a tree with times. Without a model they run offline, by their own scripts."
  ),
  Command.withShortDescription("Run scenarios and show their trees")
)

const matrix = Command.make(
  "matrix",
  matrixFlags,
  Effect.fnUntraced(function* (input) {
    const model = input.model.length > 0 ? input.model : [(yield* ofEnvironment(process.env)) ?? "script/whole"]
    const { runMatrix } = yield* Effect.promise(() => import("../matrix.ts"))
    yield* runMatrix({ ...input, model, log: input.log ?? defaultLog })
  })
).pipe(
  Command.withDescription(
    "Run every scenario file with every model, each pair in a process of its own, and print a table. For a file with several scenarios, one that fails is shown."
  ),
  Command.withShortDescription("Run scenarios with several models")
)

export const scenario = Command.make("scenario").pipe(
  Command.withDescription("Run conversations that are files: instructions, skills, a question, and what to expect."),
  Command.withShortDescription("Run conversations that are files"),
  Command.withSubcommands([run, matrix])
)

interface Environment {
  readonly [name: string]: string | undefined
}

/** Returns the model that `PROVIDER` and `MODEL` name. */
const ofEnvironment = ({
  MODEL = "",
  PROVIDER = ""
}: Environment): Effect.Effect<string | undefined, CommandFailed> => {
  if (MODEL.includes("/")) return Effect.succeed(MODEL)
  if (PROVIDER === "") return Effect.succeed(MODEL === "" ? undefined : `ollama/${MODEL}`)
  const model = MODEL === "" ? defaults.get(PROVIDER) : MODEL
  if (model !== undefined) return Effect.succeed(`${PROVIDER}/${model}`)
  const known = Array.from(defaults.keys()).join(", ")
  return Effect.fail(
    usage(`PROVIDER '${excerpt(PROVIDER, 40)}' has no default model: set MODEL too, or use one of ${known}`)
  )
}

const defaults: ReadonlyMap<string, string> = new Map([
  ["anthropic", "claude-sonnet-4-5-20250929"],
  ["google", "gemini-2.5-flash"],
  ["ollama", "llama3.1"],
  ["openai", "gpt-4o"]
])
