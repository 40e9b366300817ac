/** The flags of `kernai scenario`. */

import { Argument, Flag } from "effect/cli"
import * as Shared from "./flags.ts"

const paths = Argument.String("path").pipe(
  Argument.withDescription("A file that exports a scenario, or a folder of them; their code runs"),
  Argument.atLeast(1)
)

export const defaultLog = ".kernai/scenarios"

const log = Shared.optionalText("log", "folder", `Where logs are written (${defaultLog})`)

const store = Shared.optionalText(
  "store",
  "store",
  "Also store the runs, to look at them later: sqlite:FILE, file:FOLDER or pg:URL"
)

export const runFlags = {
  paths,
  store,
  create: Shared.create,
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

export const matrixFlags = {
  paths,
  store,
  create: Shared.create,
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
