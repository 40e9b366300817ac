/**
 * The flags that several commands have, and what they mean.
 */

import * as Flag from "effect/cli/Flag"
import type * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { type CommandFailed, usage } from "../exit.ts"
import type { Form } from "../followRun.ts"
import type { Actor } from "../runs/actor.ts"

/** Where runs are kept. */
export const store = Flag.String("store").pipe(
  Flag.withMetavar("<store>"),
  Flag.withDescription("Where runs are kept, which has to be said: sqlite:FILE, file:FOLDER or pg:URL")
)

/** Whose model speaks. */
export const speaker = {
  model: Flag.String("model").pipe(
    Flag.withAlias("m"),
    Flag.withMetavar("<provider>/<model>"),
    Flag.withDescription("Ask this model, such as anthropic/claude-sonnet-4-20250514 or ollama/llama3.1"),
    Flag.optional
  ),
  script: Flag.String("script").pipe(
    Flag.withMetavar("<file>"),
    Flag.withDescription("Ask a scripted model instead: a JSON list of replies. No key is needed"),
    Flag.optional
  )
}

/** How often a model may be asked, unless told. */
export const usualSteps = 10

/** What an agent is, apart from its model: the same wherever one run is taken up. */
export const agent = {
  system: Flag.String("system").pipe(Flag.withDescription("Instructions for the model"), Flag.optional),
  skillsFrom: Flag.String("skills-from").pipe(
    Flag.withMetavar("<folder>"),
    Flag.withDescription("Offer the skill files of this folder instead of the built-in examples. Their code is run"),
    Flag.optional
  ),
  skills: Flag.Boolean("skills").pipe(
    Flag.withDescription("Offer skills at all (--no-skills: none)"),
    Flag.withDefault(true)
  ),
  yes: Flag.Boolean("yes").pipe(
    Flag.withAlias("y"),
    Flag.withDescription("Run calls that may change something without asking"),
    Flag.withDefault(false)
  ),
  maxSteps: Flag.Int("max-steps").pipe(
    Flag.withDescription(`How often the model may be asked (${usualSteps})`),
    Flag.withDefault(usualSteps)
  ),
  dialect: Flag.Literals("dialect", ["blocks", "tools"]).pipe(
    Flag.withDescription("Blocks in text (the default), or the vendor's native tool calls"),
    Flag.withDefault("blocks")
  )
}

/** What help says of these flags where a stored run is taken up: the store knows an agent by its name alone. */
export const givenAgain = "What the run was given as --system, --skills-from, --max-steps and --dialect is given again"

/** How a run is told. */
export const form = {
  quiet: Flag.Boolean("quiet").pipe(
    Flag.withAlias("q"),
    Flag.withDescription("Print the answer alone"),
    Flag.withDefault(false)
  ),
  json: Flag.Boolean("json").pipe(Flag.withDescription("Print the result as one JSON object"), Flag.withDefault(false)),
  events: Flag.Boolean("events").pipe(
    Flag.withDescription("Print every event of the run as a JSON line"),
    Flag.withDefault(false)
  ),
  color: Flag.Boolean("color").pipe(
    Flag.withDescription("Colour the progress; default: on a terminal, unless NO_COLOR is set"),
    Flag.optional
  )
}

/** Instructions for a model that was given none. */
export const instructions = "You are a helpful assistant. Use a skill where one helps, and answer briefly."

/** The one form that was asked for. */
export const formOf = ({
  events,
  json,
  quiet
}: Omit<Command.Command.Config.Infer<typeof form>, "color">): Effect.Effect<Form, CommandFailed> => {
  const forms: ReadonlyArray<readonly [Form, boolean]> = [
    ["quiet", quiet],
    ["json", json],
    ["events", events]
  ]
  const asked = forms.flatMap(([form, isAsked]) => (isAsked ? [form] : []))
  return asked.length > 1
    ? Effect.fail(usage(`--${asked[0]} and --${asked[1]} exclude each other`))
    : Effect.succeed(asked[0] ?? "text")
}

/** The speaker that was named. */
export const speakerOf = ({
  model,
  script
}: Command.Command.Config.Infer<typeof speaker>): Effect.Effect<Actor["speaker"], CommandFailed> => {
  if (Option.isSome(model) === Option.isSome(script)) {
    return Effect.fail(usage("who runs it? Give --model <provider>/<model>, or --script <file> for a scripted model"))
  }
  return Effect.succeed(
    Option.match(model, {
      onNone: () => ({ script: Option.getOrElse(script, () => "") }),
      onSome: (model) => ({ model })
    })
  )
}

/** The skills that were asked for: the usual ones where nothing was said. */
export const skillsOf = (
  { skills, skillsFrom }: Pick<Command.Command.Config.Infer<typeof agent>, "skills" | "skillsFrom">,
  usual: "all" | "general" = "general"
): Effect.Effect<Actor["skills"], CommandFailed> =>
  Option.match(skillsFrom, {
    onNone: () => Effect.succeed(skills ? usual : "none"),
    onSome: (directory) =>
      skills ? Effect.succeed({ directory }) : Effect.fail(usage("--no-skills and --skills-from exclude each other"))
  })

/** The agent that was told, with this speaker. */
export const actorOf = (
  input: Command.Command.Config.Infer<typeof agent>,
  speaker: Actor["speaker"]
): Effect.Effect<Actor, CommandFailed> =>
  input.maxSteps < 1
    ? Effect.fail(usage("--max-steps is a number from 1"))
    : Effect.map(skillsOf(input), (skills) => ({
        speaker,
        instructions: Option.getOrElse(input.system, () => instructions),
        skills,
        yes: input.yes,
        maxSteps: input.maxSteps,
        dialect: input.dialect
      }))
