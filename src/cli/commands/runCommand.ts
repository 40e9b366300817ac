/**
 * `kernai run`: a conversation from question to answer, recorded or live.
 */

import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { help, usage } from "../exit.ts"
import type { Form } from "../followRun.ts"
import { Screen } from "../screen.ts"
import * as Shared from "./flags.ts"

const flags = {
  question: Argument.String("question").pipe(
    Argument.withDescription("What to ask; needs --model, or a --store with --script or --detach"),
    Argument.optional
  ),
  model: Shared.speaker.model,
  replay: Flag.String("replay").pipe(
    Flag.withMetavar("<name or file>"),
    Flag.withDescription("Play this recorded conversation"),
    Flag.optional
  ),
  store: Shared.store.pipe(
    Flag.withDescription("Keep the run there: sqlite:FILE, file:FOLDER or pg:URL"),
    Flag.optional
  ),
  script: Shared.speaker.script.pipe(
    Flag.withDescription("With --store: ask a scripted model, a JSON list of replies. No key is needed")
  ),
  detach: Flag.Boolean("detach").pipe(
    Flag.withDescription("With --store: store the question, print the id of the run, and leave it to 'kernai worker'"),
    Flag.withDefault(false)
  ),
  yes: Shared.agent.yes.pipe(Flag.withDescription("With --store: run calls that may change something without asking")),
  mcp: Flag.String("mcp").pipe(
    Flag.withMetavar("<file>"),
    Flag.withDescription("Use the MCP servers of this config; without a model, a scripted one shows them at work"),
    Flag.optional
  ),
  list: Flag.Boolean("list").pipe(Flag.withDescription("List the recorded conversations"), Flag.withDefault(false)),
  system: Shared.agent.system,
  image: Flag.String("image").pipe(
    Flag.withMetavar("<file>"),
    Flag.withDescription("Send a picture with the question; may be given several times"),
    Flag.atLeast(0)
  ),
  skillsFrom: Shared.agent.skillsFrom,
  skills: Shared.agent.skills.pipe(Flag.withDescription("Offer skills at all (--no-skills: a plain question)")),
  maxSteps: Shared.agent.maxSteps,
  dialect: Shared.agent.dialect,
  root: Flag.String("root").pipe(
    Flag.withMetavar("<folder>"),
    Flag.withDescription("Read files given here only inside this folder (.)"),
    Flag.withDefault(".")
  ),
  ...Shared.form
}

type Input = Command.Command.Config.Infer<typeof flags>

/** The command. */
export const run = Command.make("run", flags, (input) => start(input)).pipe(
  Command.withDescription(
    `Run a conversation. Without a model, a recorded one is played: no key is needed, and everything but the model's words is real. ${help}`
  ),
  Command.withShortDescription("Run a conversation, recorded or live"),
  Command.withExamples([
    { command: "kernai run", description: "Play the recorded conversation that comes with kernai" },
    { command: "kernai run --replay openai_scenario_weather", description: "Play another one" },
    {
      command: 'kernai run --model anthropic/claude-sonnet-4-20250514 "How many users are on the free plan?"',
      description: "Ask a model; needs ANTHROPIC_API_KEY"
    },
    {
      command: "kernai run --model ollama/llava --no-skills --image cat.png 'What is this?'",
      description: "Ask a local model about a picture"
    }
  ])
)

const start = Effect.fnUntraced(function* (input: Input) {
  const form = yield* Shared.formOf(input)
  if (input.list) return yield* list(form)
  if (input.maxSteps < 1) return yield* usage("--max-steps is a number from 1")
  if (Option.isSome(input.mcp) && Option.isSome(input.store)) {
    return yield* usage("whoever goes on with a stored run has no servers: --mcp or --store")
  }
  if (Option.isNone(input.store)) {
    if (Option.isSome(input.script))
      return yield* usage("--script needs a --store, as does whoever goes on with the run")
    if (input.detach) return yield* usage("--detach needs a --store, where a worker finds the run")
  } else if (Option.isSome(input.model) || Option.isSome(input.script) || input.detach) {
    return yield* keep(input, form, input.store.value)
  }
  return yield* Option.match(input.model, {
    onNone: () => play(input, form),
    onSome: (model) => ask(input, form, model)
  })
})

// What a way to run needs is loaded when it is taken: a replay starts without the network's modules.
const recordings = Effect.promise(() => import("../demo/recordings.ts"))

const list = Effect.fnUntraced(function* (form: Form) {
  const { bundled } = yield* recordings
  const screen = yield* Screen
  const width = Math.max(...bundled.map(({ name }) => name.length))
  screen.out(
    form === "text" || form === "quiet"
      ? bundled.map(({ about, name }) => `${name.padEnd(width)}  ${about}\n`).join("")
      : `${JSON.stringify(bundled)}\n`
  )
})

const play = Effect.fnUntraced(function* (input: Input, form: Form) {
  if (Option.isSome(input.question)) {
    return yield* usage(
      "a question needs a model: kernai run --model <provider>/<model> <question>; without both, a recorded conversation is played"
    )
  }
  const idle = withModel.find(([, isGiven]) => isGiven(input))
  if (idle !== undefined) {
    return yield* usage(`${idle[0]} needs --model: without a model the conversation that is played is fixed`)
  }
  if (Option.isSome(input.mcp)) {
    if (Option.isSome(input.replay)) return yield* usage("a recording knows no servers: give --replay or --mcp")
    const { play } = yield* Effect.promise(() => import("../mcp/play.ts"))
    return yield* play(input.mcp.value, { ...look(input, form), maxSteps: input.maxSteps })
  }
  const recording = yield* open(input)
  const { replay } = yield* Effect.promise(() => import("../replayModel.ts"))
  const options = { ...look(input, form), maxSteps: input.maxSteps }
  if (Option.isNone(input.store)) return yield* replay(recording, options)
  const Store = yield* Effect.promise(() => import("../storeFlag.ts"))
  return yield* replay(recording, { ...options, store: yield* Store.open(input.store.value, { exists: false }) })
})

type Flags = ReadonlyArray<readonly [flag: string, isGiven: (input: Input) => boolean]>

/** What an agent is told: nobody hears of it when a conversation is played, and a stored question does not keep it. */
const toldAgent: Flags = [
  ["--system", ({ system }) => Option.isSome(system)],
  ["--skills-from", ({ skillsFrom }) => Option.isSome(skillsFrom)],
  ["--no-skills", ({ skills }) => !skills],
  ["--dialect", ({ dialect }) => dialect !== "blocks"],
  ["--yes", ({ yes }) => yes]
]
const withModel: Flags = [...toldAgent, ["--image", ({ image }) => image.length > 0]]
const withWorker: Flags = [
  ...toldAgent,
  ["--model", ({ model }) => Option.isSome(model)],
  ["--script", ({ script }) => Option.isSome(script)],
  ["--max-steps", ({ maxSteps }) => maxSteps !== Shared.usualSteps]
]

const twoQuestions = usage("--replay brings its own question: give one or the other")

const ask = Effect.fnUntraced(function* (input: Input, form: Form, model: string) {
  const recording = Option.isSome(input.question) ? undefined : yield* open(input)
  if (recording === undefined && Option.isSome(input.replay)) return yield* twoQuestions
  const { live } = yield* Effect.promise(() => import("../live.ts"))
  yield* live({
    ...look(input, form),
    model,
    question: recording?.question ?? Option.getOrElse(input.question, () => ""),
    instructions: Option.getOrElse(input.system, () => recording?.instructions ?? Shared.instructions),
    images: input.image,
    root: input.root,
    maxSteps: input.maxSteps,
    dialect: input.dialect,
    skills: yield* Shared.skillsOf(input, recording === undefined ? "general" : "all"),
    mcp: Option.getOrUndefined(input.mcp)
  })
})

const keep = Effect.fnUntraced(function* (input: Input, form: Form, store: string) {
  if (Option.isNone(input.question)) return yield* usage("what is asked? A recorded question is not kept with a model")
  if (Option.isSome(input.replay)) return yield* twoQuestions
  const idle = input.detach ? withWorker.find(([, isGiven]) => isGiven(input)) : undefined
  if (idle !== undefined) {
    return yield* usage(`${idle[0]} is for 'kernai worker', which runs the question: --detach only stores it`)
  }
  const speaker = input.detach ? { nobody: "later" } : yield* Shared.speakerOf(input)
  const { begin } = yield* Effect.promise(() => import("../runs/submitRun.ts"))
  return yield* begin({
    ...look(input, form),
    store,
    actor: yield* Shared.actorOf(input, speaker),
    question: input.question.value,
    images: input.image,
    root: input.root,
    detach: input.detach
  })
})

const look = ({ color }: Input, form: Form) => ({ form, colors: Option.getOrUndefined(color) })

const open = Effect.fnUntraced(function* (input: Input) {
  const Recordings = yield* recordings
  return yield* Recordings.open(
    Option.getOrElse(input.replay, () => Recordings.standard),
    input.root
  )
})
