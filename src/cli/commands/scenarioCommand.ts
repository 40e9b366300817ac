/**
 * `kernai scenario`: whole conversations as files, run one by one or against many models.
 */

import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { type CommandFailed, usage } from "../exit.ts"
import { excerpt } from "../terminalText.ts"

const paths = Argument.String("path").pipe(
  Argument.withDescription("A file that exports a scenario, or a folder of them. Their code is run"),
  Argument.atLeast(1)
)

const usualLog = ".kernai/scenarios"

const shared = {
  log: Flag.String("log").pipe(
    Flag.withMetavar("<folder>"),
    Flag.withDescription(`Where the logs are kept (${usualLog})`),
    Flag.optional
  ),
  color: Flag.Boolean("color").pipe(
    Flag.withDescription("Colour the output; default: on a terminal, unless NO_COLOR is set"),
    Flag.optional
  )
}

const run = Command.make(
  "run",
  {
    paths,
    model: Flag.String("model").pipe(
      Flag.withAlias("m"),
      Flag.withMetavar("<provider>/<model>"),
      Flag.withDescription(
        "Who plays; default: PROVIDER and MODEL of the environment, else the scenario's own offline model, else ollama"
      ),
      Flag.optional
    ),
    logs: Flag.Boolean("logs").pipe(
      Flag.withDescription("Keep a log of each run (--no-logs: none)"),
      Flag.withDefault(true)
    ),
    json: Flag.Boolean("json").pipe(
      Flag.withDescription("Print one JSON line for each scenario"),
      Flag.withDefault(false)
    ),
    ...shared
  },
  Effect.fnUntraced(function* ({ color, json, log, logs, model, paths }) {
    if (!logs && Option.isSome(log)) return yield* usage("--no-logs and --log exclude each other")
    const named = Option.isSome(model) ? model.value : yield* ofEnvironment(process.env)
    const { runScenarios } = yield* Effect.promise(() => import("../runScenarios.ts"))
    yield* runScenarios({
      paths,
      model: named,
      log: logs ? Option.getOrElse(log, () => usualLog) : undefined,
      json,
      colors: Option.getOrUndefined(color)
    })
  })
).pipe(
  Command.withDescription(
    "Run scenarios, and show each as a tree of what happened, with times. Without a model they run offline, by their own scripts."
  ),
  Command.withShortDescription("Run scenarios and show what happened")
)

const matrix = Command.make(
  "matrix",
  {
    paths,
    model: Flag.String("model").pipe(
      Flag.withAlias("m"),
      Flag.withMetavar("<provider>/<model>"),
      Flag.withDescription(
        "A column of the matrix; give it several times. script/whole, script/words and script/chars run offline. Default: PROVIDER and MODEL of the environment, else script/whole"
      ),
      Flag.atLeast(0)
    ),
    concurrency: Flag.Int("concurrency").pipe(Flag.withDescription("Processes at once (2)"), Flag.withDefault(2)),
    timeout: Flag.Int("timeout").pipe(
      Flag.withMetavar("<seconds>"),
      Flag.withDescription("What one pair may take (600)"),
      Flag.withDefault(600)
    ),
    ...shared
  },
  Effect.fnUntraced(function* ({ color, concurrency, log, model, paths, timeout }) {
    if (concurrency < 1) return yield* usage("--concurrency is a number from 1")
    if (timeout < 1) return yield* usage("--timeout is a number of seconds from 1")
    const named = model.length > 0 ? undefined : yield* ofEnvironment(process.env)
    const { runMatrix } = yield* Effect.promise(() => import("../matrix.ts"))
    yield* runMatrix({
      paths,
      models: model.length > 0 ? model : [named ?? "script/whole"],
      concurrency,
      timeoutMs: timeout * 1000,
      log: Option.getOrElse(log, () => usualLog),
      colors: Option.getOrUndefined(color)
    })
  })
).pipe(
  Command.withDescription(
    "Run every file of scenarios with every model, each pair in a process of its own, and show a table while they run. Of several scenarios in a file, one that fails is shown."
  ),
  Command.withShortDescription("Run scenarios against several models")
)

/** The command. */
export const scenario = Command.make("scenario").pipe(
  Command.withDescription("Whole conversations as files: instructions, skills, a question, and what must come of it."),
  Command.withShortDescription("Run conversations kept as files"),
  Command.withSubcommands([run, matrix])
)

/** The model that `PROVIDER` and `MODEL` name, if they do (BP-181). */
const ofEnvironment = (environment: {
  readonly [name: string]: string | undefined
}): Effect.Effect<string | undefined, CommandFailed> => {
  const provider = environment["PROVIDER"] ?? ""
  const model = environment["MODEL"] ?? ""
  if (model.includes("/")) return Effect.succeed(model)
  if (provider === "") return Effect.succeed(model === "" ? undefined : `ollama/${model}`)
  const name = model === "" ? usual.get(provider) : model
  return name === undefined
    ? Effect.fail(
        usage(
          `PROVIDER is '${excerpt(provider, 40)}', which has no usual model: set MODEL too, or use one of ${Array.from(usual.keys()).join(", ")}`
        )
      )
    : Effect.succeed(`${provider}/${name}`)
}

const usual: ReadonlyMap<string, string> = new Map([
  ["anthropic", "claude-sonnet-4-5-20250929"],
  ["google", "gemini-2.5-flash"],
  ["ollama", "llama3.1"],
  ["openai", "gpt-4o"]
])
