/** `kernai worker`: runs stored runs. */

import { Command, Flag } from "effect/cli"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import { help, usage } from "../exit.ts"
import * as Settings from "../settings.ts"
import * as Shared from "./flags.ts"

const flags = {
  store: Shared.store,
  ...Shared.agent,
  agentName: Shared.agentName,
  concurrency: Shared.positive("concurrency", "number", "Runs at once (1)").pipe(Flag.withDefault(1)),
  lease: Shared.positive("lease", "seconds", "How long a run stays claimed after its worker died (30)").pipe(
    Flag.withDefault(30)
  ),
  once: Shared.toggle(
    "once",
    "Run what can run now, then end: with 1 if a run failed, else with 3 if one waits for a person, else with 0"
  ),
  json: Shared.toggle("json", "Print a JSON line for each run"),
  cluster: Shared.toggle("cluster", "Be a runner of the cluster in a PostgreSQL store; the next flags are for it"),
  host: Shared.text(
    "host",
    "name",
    "The host at which other runners reach this one (KERNAI_CLUSTER_HOST, else 127.0.0.1)"
  ).pipe(Flag.withFallbackConfig(Config.String("KERNAI_CLUSTER_HOST")), Flag.withDefault("127.0.0.1")),
  port: Shared.positive("port", "number", "The port of this runner (KERNAI_CLUSTER_PORT, else 34431)").pipe(
    Flag.withFallbackConfig(Config.Int("KERNAI_CLUSTER_PORT")),
    Flag.withDefault(34431)
  ),
  shardGroup: Shared.text(
    "shard-group",
    "name",
    "The group whose runs it takes (KERNAI_CLUSTER_GROUP, else default)"
  ).pipe(Flag.withFallbackConfig(Config.String("KERNAI_CLUSTER_GROUP")), Flag.withDefault("default"))
}

export type WorkerFlags = Shared.Values<typeof flags>

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
