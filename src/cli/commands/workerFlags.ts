/** The flags of `kernai worker`. */

import { Flag } from "effect/cli"
import * as Config from "effect/Config"
import * as Shared from "./flags.ts"

export const flags = {
  store: Shared.store,
  create: Shared.create,
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
