/**
 * Flags that several commands have.
 */

import { Argument, type Command, Flag } from "effect/cli"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { type CommandFailed, usage } from "../exit.ts"
import type { Form } from "../followRun.ts"

/** Makes a flag optional. It is undefined if it is not given. */
export const optional = <A>(flag: Flag.Flag<A>): Flag.Flag<A | undefined> =>
  Flag.map(Flag.optional(flag), Option.getOrUndefined)

/** A text flag, with its placeholder in the help. */
export const text = (name: string, metavar: string, description: string) =>
  Flag.String(name).pipe(Flag.withMetavar(`<${metavar}>`), Flag.withDescription(description))

/** An optional text flag. */
export const optionalText = (name: string, metavar: string, description: string) =>
  optional(text(name, metavar, description))

/** An optional argument. */
export const optionalArgument = (name: string, description: string) =>
  Argument.String(name).pipe(
    Argument.withDescription(description),
    Argument.optional,
    Argument.map(Option.getOrUndefined)
  )

/** A switch that is off unless it is given. */
export const toggle = (name: string, description: string) =>
  Flag.Boolean(name).pipe(Flag.withDescription(description), Flag.withDefault(false))

/** A switch that is undefined unless it is given. */
export const optionalToggle = (name: string, description: string) =>
  optional(Flag.Boolean(name).pipe(Flag.withDescription(description)))

/** A flag for a whole number from 1. */
export const positive = (name: string, metavar: string, description: string) =>
  Flag.Int(name).pipe(
    Flag.filter(
      (number) => number >= 1,
      () => "a number from 1"
    ),
    Flag.withMetavar(`<${metavar}>`),
    Flag.withDescription(description)
  )

/** The store of runs, from the flag or from the environment. */
export const storeFor = (purpose: string) =>
  text("store", "store", `${purpose}: a SQLite FILE, file:FOLDER or pg:URL (KERNAI_STORE)`).pipe(
    Flag.withFallbackConfig(Config.String("KERNAI_STORE"))
  )

/** The store of runs that a command shows or changes. */
export const store = storeFor("Where the runs are stored")

/** Creates the store that `--store` names. */
export const create = toggle("create", "Create the store of --store if there is none")

/** Prints JSON instead of text. */
export const json = toggle("json", "Print JSON")

const dialect = Flag.Literals("dialect", ["blocks", "tools", "auto"]).pipe(Flag.withMetavar("<dialect>"))

/** The dialect of an agent, with a description for the command. */
export const dialectFor = (description: string) => optional(Flag.withDescription(dialect, description))

/** The flags that describe an agent. Omitted ones follow from the agent file, or from the continued run. */
export const agent = {
  agent: optionalText(
    "agent",
    "file",
    "Run the agent of a YAML or JSON file, or of a module (./agents.ts#support), whose code runs; other flags override it"
  ).pipe(Flag.withAlias("a")),
  model: optionalText("model", "model", "Ask this model: <provider>/<model>, such as ollama/llama3.1").pipe(
    Flag.withAlias("m")
  ),
  script: optionalText("script", "file", "Ask a scripted model, which needs no key: a JSON list of replies"),
  mcp: optionalText("mcp", "file", "Offer the tools of the MCP servers in this config"),
  system: optionalText("system", "text", "Instructions for the model"),
  skillsFrom: optionalText(
    "skills-from",
    "folder",
    "Offer the skill files of a folder instead of the examples; their code runs"
  ),
  skills: optionalToggle("skills", "Offer skills (--no-skills offers none)"),
  code: optionalToggle("code", "Let the model write programs that call the skills; needs quickjs-emscripten-core"),
  yes: optionalToggle("yes", "Run calls that may change something without asking").pipe(Flag.withAlias("y")),
  maxSteps: optional(positive("max-steps", "number", "Maximum turns of a run (10, or that of the agent file)")),
  dialect: dialectFor("Blocks in text (default), native tool calls, or whichever suits the model (auto)")
}

/** Names agents whose runs are run. The file of `--agent` or the run of a command may have other names. */
export const agentName = text(
  "agent-name",
  "name",
  "Run the runs of this agent; repeatable (default: the agents of --agent, or 'agent')"
).pipe(Flag.atLeast(0))

/** The port of the studio. */
export const port = optional(positive("port", "number", "The port on this machine (4700, or the next free one)"))

export const open = toggle("open", "Open the page in a browser")

/** Explains that a run keeps its settings. */
export const kept = "A run that a command started keeps its flags: give only those to change"

/** Colours. By default the screen decides. */
export const color = optionalToggle("color", "Use colours (default: on a terminal, unless NO_COLOR is set)")

/** The flags for the output of a run. */
export const form = {
  quiet: toggle("quiet", "Print only the answer").pipe(Flag.withAlias("q")),
  json: toggle("json", "Print the result as a JSON object"),
  events: toggle("events", "Print every event of the run as a JSON line"),
  color
}

/** The values of flags. */
export type Values<Flags extends Command.Command.Config> = Command.Command.Config.Infer<Flags>

/** Returns the form that was chosen. */
export const formOf = (input: Omit<Values<typeof form>, "color">): Effect.Effect<Form, CommandFailed> => {
  const [chosen = "text", other] = (["quiet", "json", "events"] as const).filter((form) => input[form])
  return other === undefined
    ? Effect.succeed<Form>(chosen)
    : Effect.fail(usage(`--${chosen} and --${other} cannot be used together`))
}
