/**
 * `kernai run`: one question, answered by a recording or by a model.
 */

import { Command, Flag } from "effect/cli"
import * as Effect from "effect/Effect"
import { help, usage } from "../exit.ts"
import type { Form } from "../followRun.ts"
import { Screen } from "../screen.ts"
import * as Shared from "./flags.ts"

const flags = {
  question: Shared.optionalArgument("question", "What to ask; needs --model, or --store with --script or --detach"),
  model: Shared.source.model,
  replay: Shared.optionalText("replay", "name", "Play this recorded conversation: a name of --list, or a file"),
  store: Shared.store.pipe(
    Flag.withDescription("Store the run in sqlite:FILE, file:FOLDER or pg:URL"),
    Shared.optional
  ),
  script: Shared.source.script.pipe(
    Flag.withDescription("With --store: ask a scripted model, a JSON list of replies, without any key")
  ),
  detach: Shared.toggle("detach", "With --store: only store the question, for 'kernai worker', and print its id"),
  yes: Shared.agent.yes.pipe(Flag.withDescription("With --store: run calls that may change something without asking")),
  mcp: Shared.optionalText("mcp", "file", "Use the MCP servers of a config; without --model, with a scripted model"),
  list: Shared.toggle("list", "List the recorded conversations"),
  system: Shared.agent.system,
  image: Shared.text("image", "file", "Send a picture with the question; repeatable").pipe(Flag.atLeast(0)),
  skillsFrom: Shared.agent.skillsFrom,
  skills: Shared.agent.skills,
  maxSteps: Shared.agent.maxSteps,
  dialect: Shared.agent.dialect,
  root: Shared.text("root", "folder", "Read --image and --replay only inside this folder (.)").pipe(
    Flag.withDefault(".")
  ),
  ...Shared.form
}

export type RunFlags = Shared.Values<typeof flags>

export const run = Command.make("run", flags, (input) => start(input)).pipe(
  Command.withDescription(
    `Ask a question. Without a model a recorded conversation is played: no key is needed, and everything but the model's words is real. ${help}`
  ),
  Command.withShortDescription("Ask a question, or play a recorded conversation"),
  Command.withExamples([
    { command: "kernai run", description: "Play the recorded conversation that comes with kernai" },
    { command: "kernai run --replay openai_scenario_weather", description: "Play another one" },
    {
      command: 'kernai run -m openai/gpt-4o "How many users are on the free plan?"',
      description: "Ask a model; needs OPENAI_API_KEY"
    },
    {
      command: "kernai run -m ollama/llava --no-skills --image cat.png 'What is this?'",
      description: "Ask a local model about a picture"
    }
  ])
)

const start = Effect.fnUntraced(function* (input: RunFlags) {
  const form = yield* Shared.formOf(input)
  if (input.list) return yield* list(form)
  if (input.store === undefined) {
    if (input.script !== undefined) return yield* usage("--script needs a --store")
    if (input.detach) return yield* usage("--detach needs a --store, where a worker finds the run")
  } else {
    if (input.mcp !== undefined)
      return yield* usage("--mcp and --store exclude each other: a resumed run has no servers")
    if (input.detach) return yield* submit(input, form, input.store)
  }
  if (input.model !== undefined || input.script !== undefined) return yield* ask(input, form)
  return yield* play(input, form)
})

const list = Effect.fnUntraced(function* (form: Form) {
  const screen = yield* Screen
  const { bundled } = yield* Effect.promise(() => import("../demo/recordings.ts"))
  const width = Math.max(...bundled.map(({ name }) => name.length))
  screen.out(
    form === "text" || form === "quiet"
      ? bundled.map(({ about, name }) => `${name.padEnd(width)}  ${about}\n`).join("")
      : `${JSON.stringify(bundled)}\n`
  )
})

type Flags = ReadonlyArray<readonly [flag: string, isGiven: (input: RunFlags) => boolean]>

const agentFlags: Flags = [
  ["--system", ({ system }) => system !== undefined],
  ["--skills-from", ({ skillsFrom }) => skillsFrom !== undefined],
  ["--no-skills", ({ skills }) => !skills],
  ["--dialect", ({ dialect }) => dialect !== "blocks"],
  ["--yes", ({ yes }) => yes]
]
const modelFlags: Flags = [...agentFlags, ["--image", ({ image }) => image.length > 0]]
const workerFlags: Flags = [
  ...agentFlags,
  ["--model", ({ model }) => model !== undefined],
  ["--script", ({ script }) => script !== undefined],
  ["--max-steps", ({ maxSteps }) => maxSteps !== Shared.defaultSteps]
]

const given = (flags: Flags, input: RunFlags): string | undefined => flags.find(([, isGiven]) => isGiven(input))?.[0]

const recordingOf = Effect.fnUntraced(function* ({ replay, root }: RunFlags) {
  const Recordings = yield* Effect.promise(() => import("../demo/recordings.ts"))
  return yield* Recordings.open(replay ?? Recordings.standard, root)
})

/** Plays a recorded conversation, or the script for MCP servers. */
const play = Effect.fnUntraced(function* (input: RunFlags, form: Form) {
  if (input.question !== undefined) {
    return yield* usage("a question needs a model: kernai run --model <provider>/<model> <question>")
  }
  const idle = given(modelFlags, input)
  if (idle !== undefined) return yield* usage(`${idle} needs --model: without a model the conversation is fixed`)
  if (input.mcp !== undefined) {
    if (input.replay !== undefined) return yield* usage("--replay and --mcp exclude each other without --model")
    const { scriptedRun } = yield* Effect.promise(() => import("../mcp/scriptedRun.ts"))
    return yield* scriptedRun(input.mcp, { ...input, form })
  }
  const recording = yield* recordingOf(input)
  const { replay } = yield* Effect.promise(() => import("../replayModel.ts"))
  const Store = yield* Effect.promise(() => import("../storeFlag.ts"))
  const store = input.store === undefined ? undefined : yield* Store.openOrCreate(input.store)
  return yield* replay(recording, { form, color: input.color, maxSteps: input.maxSteps, store })
})

const questionOf = Effect.fnUntraced(function* ({ question, replay }: RunFlags) {
  if (question === undefined) return yield* usage("--store needs a question: a recorded one is not stored with a model")
  if (replay !== undefined) return yield* usage("--replay brings its own question: give one or the other")
  return question
})

/** Asks a model; without a store it may be a recorded question. */
const ask = Effect.fnUntraced(function* (input: RunFlags, form: Form) {
  const recording = input.store === undefined && input.question === undefined ? yield* recordingOf(input) : undefined
  const question = recording === undefined ? yield* questionOf(input) : recording.question
  const agent = yield* Shared.agentOf(
    { ...input, system: input.system ?? recording?.instructions },
    Shared.sourceOf(input),
    recording === undefined ? "general" : "all"
  )
  const { ask } = yield* Effect.promise(() => import("../runs/askAgent.ts"))
  return yield* ask(agent, { ...input, form, question })
})

/** Stores a question for a worker. */
const submit = Effect.fnUntraced(function* (input: RunFlags, form: Form, store: string) {
  const question = yield* questionOf(input)
  const idle = given(workerFlags, input)
  if (idle !== undefined) {
    return yield* usage(`${idle} is for 'kernai worker', which runs the question: --detach only stores it`)
  }
  const agent = yield* Shared.agentOf(input, { _tag: "Unused", id: "later" })
  const { submit } = yield* Effect.promise(() => import("../runs/askAgent.ts"))
  return yield* submit(agent, store, { ...input, form, question })
})
