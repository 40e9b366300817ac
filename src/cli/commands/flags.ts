/**
 * Flags that several commands have.
 */

import { Argument, type Command, Flag } from "effect/cli"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { type CommandFailed, usage } from "../exit.ts"
import type { Form } from "../followRun.ts"
import type { Skills } from "../kernelLayer.ts"
import type { ModelSource } from "../models.ts"

/** Makes a flag optional: it is undefined where it is not given. */
export const optional = <A>(flag: Flag.Flag<A>): Flag.Flag<A | undefined> =>
  Flag.map(Flag.optional(flag), Option.getOrUndefined)

/** A text, with the word that stands for it in the help. */
export const text = (name: string, metavar: string, description: string) =>
  Flag.String(name).pipe(Flag.withMetavar(`<${metavar}>`), Flag.withDescription(description))

/** A text that may be missing. */
export const optionalText = (name: string, metavar: string, description: string) =>
  optional(text(name, metavar, description))

/** An argument that may be missing. */
export const optionalArgument = (name: string, description: string) =>
  Argument.String(name).pipe(
    Argument.withDescription(description),
    Argument.optional,
    Argument.map(Option.getOrUndefined)
  )

/** A switch that is off unless it is given. */
export const toggle = (name: string, description: string) =>
  Flag.Boolean(name).pipe(Flag.withDescription(description), Flag.withDefault(false))

/** A whole number from 1. */
export const positive = (name: string, metavar: string, description: string) =>
  Flag.Int(name).pipe(
    Flag.filter(
      (number) => number >= 1,
      () => "a number from 1"
    ),
    Flag.withMetavar(`<${metavar}>`),
    Flag.withDescription(description)
  )

/** Where runs are stored. */
export const store = text("store", "store", "The store of the runs: sqlite:FILE, file:FOLDER or pg:URL")

/** Which model is asked. */
export const source = {
  model: optionalText("model", "model", "Ask a model, as <provider>/<model>: ollama/llama3.1").pipe(
    Flag.withAlias("m")
  ),
  script: optionalText("script", "file", "Ask a scripted model instead: a JSON list of replies, without any key")
}

/** How many turns a run has unless it is told. */
export const defaultSteps = 10

/** What an agent is, apart from its model. */
export const agent = {
  system: optionalText("system", "text", "Instructions for the model"),
  skillsFrom: optionalText(
    "skills-from",
    "folder",
    "Offer the skill files of a folder instead of the examples; their code runs"
  ),
  skills: Flag.Boolean("skills").pipe(
    Flag.withDescription("Offer skills (--no-skills offers none)"),
    Flag.withDefault(true)
  ),
  yes: toggle("yes", "Run calls that may change something without asking").pipe(Flag.withAlias("y")),
  maxSteps: positive("max-steps", "number", `How many turns the run may take (${defaultSteps})`).pipe(
    Flag.withDefault(defaultSteps)
  ),
  dialect: Flag.Literals("dialect", ["blocks", "tools", "auto"]).pipe(
    Flag.withMetavar("<dialect>"),
    Flag.withDescription("Blocks in text (default), the native tool calls of the model, or as it is best asked (auto)"),
    Flag.withDefault("blocks")
  )
}

/** Says that a process which continues a run needs the flags of the agent again. */
export const givenAgain =
  "A store does not keep --system, --skills-from, --max-steps and --dialect: give them again as the run had them"

/** Colours, unless the screen decides. */
export const color = Flag.Boolean("color").pipe(
  Flag.withDescription("Use colours (default: on a terminal, unless NO_COLOR is set)"),
  optional
)

/** How a run is shown. */
export const form = {
  quiet: toggle("quiet", "Print only the answer").pipe(Flag.withAlias("q")),
  json: toggle("json", "Print the result as a JSON object"),
  events: toggle("events", "Print every event of the run as a JSON line"),
  color
}

/** Instructions for a model that is given none. */
export const instructions = "You are a helpful assistant. Use a skill where one helps, and answer briefly."

/** The values of flags. */
export type Values<Flags extends Command.Command.Config> = Command.Command.Config.Infer<Flags>

/** Returns the form that was chosen. */
export const formOf = (input: Omit<Values<typeof form>, "color">): Effect.Effect<Form, CommandFailed> => {
  const [chosen = "text", other] = (["quiet", "json", "events"] as const).filter((form) => input[form])
  return other === undefined
    ? Effect.succeed<Form>(chosen)
    : Effect.fail(usage(`--${chosen} and --${other} exclude each other`))
}

/** Returns the model that was named, by a model string or by a script. */
export const sourceOf = ({ model, script }: Values<typeof source>): ModelSource | undefined => {
  if (model !== undefined && script === undefined) return { _tag: "Provider", name: model }
  return script !== undefined && model === undefined ? { _tag: "Script", file: script } : undefined
}

/** Returns the skills to offer; `examples` where nothing else was chosen. */
export const skillsOf = (
  { skills, skillsFrom }: Pick<Values<typeof agent>, "skills" | "skillsFrom">,
  examples: "all" | "general" = "general"
): Effect.Effect<Skills, CommandFailed> => {
  if (skillsFrom === undefined) return Effect.succeed(skills ? examples : "none")
  return skills
    ? Effect.succeed({ directory: skillsFrom })
    : Effect.fail(usage("--no-skills and --skills-from exclude each other"))
}

/** Returns the agent that the flags describe. */
export const agentOf = Effect.fnUntraced(function* (
  input: Values<typeof agent>,
  source: ModelSource | undefined,
  examples?: "all" | "general"
) {
  if (source === undefined) {
    return yield* usage("which model runs it? Give --model <provider>/<model>, or --script <file> for a scripted model")
  }
  const { dialect, maxSteps, system = instructions, yes } = input
  return { source, instructions: system, skills: yield* skillsOf(input, examples), yes, maxSteps, dialect }
})

/** An agent as flags describe it. */
export type Agent = Effect.Success<ReturnType<typeof agentOf>>
