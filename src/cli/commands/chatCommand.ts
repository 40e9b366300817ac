/**
 * `kernai chat`: a conversation that goes on where it was.
 */

import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { help, usage } from "../exit.ts"
import * as Shared from "./flags.ts"

const flags = {
  agent: Flag.String("agent").pipe(
    Flag.withAlias("a"),
    Flag.withMetavar("<file>"),
    Flag.withDescription("Talk with the agent of this YAML or JSON file; the other flags go before what it says"),
    Flag.optional
  ),
  model: Shared.speaker.model.pipe(
    Flag.withDescription("Talk with this model, such as anthropic/claude-sonnet-4-20250514 or ollama/llama3.1")
  ),
  script: Shared.speaker.script.pipe(
    Flag.withDescription("Talk with a scripted model instead: a JSON list of replies. No key is needed")
  ),
  session: Flag.String("session").pipe(
    Flag.withAlias("s"),
    Flag.withMetavar("<name>"),
    Flag.withDescription("Which conversation to go on with, or to begin (default)"),
    Flag.withDefault("default")
  ),
  store: Flag.String("store").pipe(
    Flag.withMetavar("<store>"),
    Flag.withDescription(
      "Where conversations are kept: sqlite:FILE, file:FOLDER or pg:URL; a FILE alone is SQLite's (.kernai/chat.db)"
    ),
    Flag.withDefault(".kernai/chat.db")
  ),
  system: Shared.agent.system,
  skillsFrom: Shared.agent.skillsFrom,
  skills: Shared.agent.skills.pipe(Flag.withDescription("Offer skills at all (--no-skills: plain talk)")),
  yes: Shared.agent.yes,
  maxSteps: Flag.Int("max-steps").pipe(
    Flag.withDescription(
      "How often the model may be asked for one message (20; with --agent what its file says, or 10)"
    ),
    Flag.optional
  ),
  dialect: Flag.Literals("dialect", ["blocks", "tools"]).pipe(
    Flag.withDescription(
      "Blocks in text (the default, unless the agent says otherwise), or the vendor's native tool calls"
    ),
    Flag.optional
  ),
  color: Shared.form.color.pipe(
    Flag.withDescription("Colour the output; default: on a terminal, unless NO_COLOR is set")
  )
}

type Input = Command.Command.Config.Infer<typeof flags>

/** The command. */
export const chat = Command.make("chat", flags, (input) => start(input)).pipe(
  Command.withDescription(
    `Talk with a model. Every message is kept: a chat that was ended, or killed, goes on where it was. Calls that may change something are asked about first. Without a terminal, every line of the input is a message, and one that has no answer is the last. ${help}`
  ),
  Command.withShortDescription("Talk with a model, and go on later"),
  Command.withExamples([
    { command: "kernai chat --model ollama/llama3.1", description: "Talk with a local model" },
    {
      command: "kernai chat --model anthropic/claude-sonnet-4-20250514 --session plans --skills-from ./skills",
      description: "Go on with a conversation, with your own skills"
    },
    { command: "kernai chat --agent librarian.yaml", description: "Talk with the agent of a file" }
  ])
)

const start = Effect.fnUntraced(function* (input: Input) {
  const speakers = Number(Option.isSome(input.model)) + Number(Option.isSome(input.script))
  if (speakers > 1 || (speakers === 0 && Option.isNone(input.agent))) {
    return yield* usage(
      "whom to talk with? Give --model <provider>/<model>, or --script <file> for a scripted model, or --agent <file>"
    )
  }
  if (Option.getOrElse(input.maxSteps, () => 1) < 1) return yield* usage("--max-steps is a number from 1")
  const skills = yield* Shared.skillsOf(input)
  const [{ chat }, { layerProcess }] = yield* Effect.promise(() =>
    Promise.all([import("../chat/terminalChat.ts"), import("../chat/lines.ts")])
  )
  yield* chat({
    session: input.session,
    store: input.store,
    agent: Option.getOrUndefined(input.agent),
    speaker: Option.match(input.model, {
      onNone: () => Option.getOrUndefined(Option.map(input.script, (script) => ({ script }))),
      onSome: (model) => ({ model })
    }),
    instructions: Option.getOrUndefined(input.system),
    skills,
    yes: input.yes,
    maxSteps: Option.getOrUndefined(input.maxSteps),
    dialect: Option.getOrUndefined(input.dialect),
    colors: Option.getOrUndefined(input.color)
  }).pipe(Effect.provide(layerProcess))
})
