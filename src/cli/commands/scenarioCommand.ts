/**
 * `kernai scenario`: runs conversations that are files, one by one or with many models.
 */

import { Argument, Command, Flag } from "effect/cli"
import * as Effect from "effect/Effect"
import { type CommandFailed, usage } from "../exit.ts"
import { excerpt } from "../terminalText.ts"
import * as Shared from "./flags.ts"

const paths = Argument.String("path").pipe(
  Argument.withDescription("A file that exports a scenario, or a folder of them; their code runs"),
  Argument.atLeast(1)
)

const defaultLog = ".kernai/scenarios"

const log = Shared.optionalText("log", "folder", `Where logs are written (${defaultLog})`)

const store = Shared.optionalText(
  "store",
  "store",
  "Also store the runs, to look at them later: sqlite:FILE, file:FOLDER or pg:URL"
)

const runFlags = {
  paths,
  store,
  model: Shared.optionalText(
    "model",
    "model",
    "The model, as <provider>/<model> (default: PROVIDER and MODEL of the environment, else offline, else Ollama)"
  ).pipe(Flag.withAlias("m")),
  logs: Flag.Boolean("logs").pipe(
    Flag.withDescription("Write a log of each run (--no-logs writes none)"),
    Flag.withDefault(true)
  ),
  dialect: Shared.dialectFor("The dialect, instead of that of the scenarios"),
  json: Shared.toggle("json", "Print a JSON line for each scenario"),
  log,
  color: Shared.color
}

/** The values of the flags of `run`; without a log nothing is written. */
export type ScenarioFlags = Omit<Shared.Values<typeof runFlags>, "logs">

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

const matrixFlags = {
  paths,
  store,
  model: Shared.text(
    "model",
    "model",
    "A column of the matrix; repeatable. script/whole, script/words and script/chars run offline (default: PROVIDER and MODEL of the environment, else script/whole)"
  ).pipe(Flag.withAlias("m"), Flag.atLeast(0)),
  dialects: Shared.toggle(
    "dialects",
    "Run each pair in blocks and with native tools, and write the better one for each model"
  ),
  concurrency: Shared.positive("concurrency", "number", "Processes at once (2)").pipe(Flag.withDefault(2)),
  timeout: Shared.positive("timeout", "seconds", "How long a pair may take (600)").pipe(Flag.withDefault(600)),
  json: Shared.toggle("json", "Print the report as a JSON line"),
  log,
  color: Shared.color
}

/** The values of the flags of `matrix`. */
export type MatrixFlags = Shared.Values<typeof matrixFlags> & { readonly log: string }

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
