/**
 * `kernai run`: one question, answered by a recording or by a model.
 */

import { Command } from "effect/cli"
import * as Effect from "effect/Effect"
import { help, usage } from "../exit.ts"
import type { Form } from "../followRun.ts"
import { Screen } from "../screen.ts"
import * as Settings from "../settings.ts"
import { table } from "../table.ts"
import * as Shared from "./flags.ts"
import { flags, type RunFlags } from "./runFlags.ts"

export const run = Command.make("run", flags, (input) => start(input)).pipe(
  Command.withDescription(
    `Ask a question. Without a model a recorded conversation is played: no key is needed, and everything but the model's words is real. Only a stored run asks before calls that may change something. ${help}`
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
  if (input.detach) return yield* submit(input, form)
  if ((input.model ?? input.script ?? input.agent) !== undefined) return yield* ask(input, form)
  return yield* play(input, form)
})

const list = Effect.fnUntraced(function* (form: Form) {
  const screen = yield* Screen
  const { bundled } = yield* Effect.promise(() => import("../demo/recordings.ts"))
  screen.out(
    form === "text" || form === "quiet"
      ? table<(typeof bundled)[number]>(
          [
            { title: "", cell: ({ name }) => name },
            { title: "", cell: ({ about }) => about, least: 20 }
          ],
          bundled,
          screen.answers
        )
      : `${JSON.stringify(bundled)}\n`
  )
})

const recordingOf = Effect.fnUntraced(function* ({ replay, root }: RunFlags) {
  const Recordings = yield* Effect.promise(() => import("../demo/recordings.ts"))
  return yield* Recordings.open(replay ?? Recordings.standard, root)
})

/** Plays a recorded conversation, or the script for MCP servers. */
const play = Effect.fnUntraced(function* (input: RunFlags, form: Form) {
  if (input.question !== undefined) {
    return yield* usage("a question needs a model: kernai run --model <provider>/<model> <question>")
  }
  const idle =
    Settings.firstOf(input, ["system", "skillsFrom", "skills", "code", "yes", "dialect"]) ??
    (input.image.length > 0 ? "--image" : undefined)
  if (idle !== undefined) return yield* usage(`${idle} needs --model: without a model the conversation is fixed`)
  const { color, create, maxSteps, mcp, store } = input
  const Store = yield* Effect.promise(() => import("../storeFlag.ts"))
  const opened = store === undefined ? Store.memory : yield* Store.openNamed({ store, create })
  if (mcp === undefined) {
    const { replay } = yield* Effect.promise(() => import("../replayModel.ts"))
    return yield* replay(yield* recordingOf(input), { form, color, maxSteps, store, opened })
  }
  if (input.replay !== undefined) return yield* usage("--replay and --mcp cannot be used together without --model")
  const { scriptedRun } = yield* Effect.promise(() => import("../mcp/scriptedRun.ts"))
  return yield* scriptedRun(mcp, { form, color, maxSteps, store, opened })
})

const questionOf = Effect.fnUntraced(function* ({ question, replay }: RunFlags) {
  if (question === undefined)
    return yield* usage("a question is missing: kernai run --model <provider>/<model> <question>")
  if (replay !== undefined) return yield* usage("--replay brings its own question: give one or the other")
  return question
})

/** Asks a model. Without a store, the question of a recording may be used. */
const ask = Effect.fnUntraced(function* (input: RunFlags, form: Form) {
  const recording = input.store === undefined && input.question === undefined ? yield* recordingOf(input) : undefined
  const question = recording === undefined ? yield* questionOf(input) : recording.question
  const settings = yield* Settings.ofFlags({ ...input, system: input.system ?? recording?.instructions })
  const { ask } = yield* Effect.promise(() => import("../runs/askAgent.ts"))
  return yield* ask(settings, { ...input, form, question, examples: recording === undefined ? "general" : "all" })
})

/** Stores a question for a worker. */
const submit = Effect.fnUntraced(function* (input: RunFlags, form: Form) {
  const { store } = input
  if (store === undefined) return yield* usage("--detach needs a --store, where a worker finds the run")
  const question = yield* questionOf(input)
  const { agent, ...others } = yield* Settings.ofFlags(input)
  const idle = Settings.firstOf(others)
  if (idle !== undefined) {
    return yield* usage(`${idle} is for 'kernai worker', which runs the question: --detach only stores it`)
  }
  const { submit } = yield* Effect.promise(() => import("../runs/askAgent.ts"))
  return yield* submit({ agent }, { ...input, store, form, question })
})
