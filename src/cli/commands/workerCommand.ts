/** `kernai worker`: runs stored runs. */

import { Command } from "effect/cli"
import * as Effect from "effect/Effect"
import { help, usage } from "../exit.ts"
import * as Settings from "../settings.ts"
import { flags } from "./workerFlags.ts"

export const worker = Command.make(
  "worker",
  flags,
  Effect.fnUntraced(function* (input) {
    if (input.agentName.some((name) => /\.(ya?ml|json)$/i.test(name))) {
      return yield* usage("--agent-name takes a name; --agent takes a file")
    }
    const settings = yield* Settings.ofFlags(input)
    if (input.cluster && input.once) return yield* usage("--once is for a worker without --cluster")
    if (input.cluster && !input.store.startsWith("pg:")) return yield* usage("--cluster needs --store pg:URL")
    const { work } = yield* Effect.promise(() => import("../runs/workerProcess.ts"))
    yield* work(settings, input)
  })
).pipe(
  Command.withDescription(
    `Run the runs of a store: submitted ones, answered ones, and those of workers that died. Questions without an answer in time are declined. SIGTERM ends the worker: every run finishes its step and is released; the exit code is 130. Every run is run with the flags of the worker; one that has started keeps its dialect. ${help}`
  ),
  Command.withShortDescription("Run stored runs"),
  Command.withExamples([
    {
      command: "kernai worker --store sqlite:runs.db --model ollama/llama3.1",
      description: "Run what 'kernai run --detach' stored"
    },
    {
      command: "kernai worker --cluster --store pg:postgres://host/runs -m ollama/llama3.1",
      description: "Be one of several runners, which take over from each other"
    }
  ])
)
