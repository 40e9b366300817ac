/**
 * A runner of a cluster as a process.
 */

import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type * as RunWorker from "../../RunWorker.ts"
import type { SkillRegistry } from "../../SkillRegistry.ts"
import * as PgRunStore from "../../sql/PgRunStore.ts"
import type { WorkerFlags } from "../commands/workerFlags.ts"
import { orUsage } from "../exit.ts"
import { Screen } from "../screen.ts"
import * as Text from "../terminalText.ts"

/**
 * Runs the runs of its shards until it is interrupted. Then each finishes its step, and another runner takes it over.
 */
export const serve = Effect.fnUntraced(function* (
  settings: RunWorker.Options<SkillRegistry>,
  { host, port, shardGroup, store }: Pick<WorkerFlags, "host" | "port" | "shardGroup" | "store">
) {
  const screen = yield* Screen
  const { ClusterKernel, ClusterNode } = yield* Effect.promise(() => import("../../cluster/index.ts"))
  const { agents, onRun, resume, workerId } = settings
  const groups = [...new Set(["default", shardGroup])]
  const node = ClusterNode.layer({ host, port, groups, takes: [shardGroup] })
  const runner = ClusterKernel.layer({ agents, onRun, resume, workerId }).pipe(
    Layer.provide(node),
    Layer.provide(PgRunStore.layerSqlClient({ url: Redacted.make(store.slice("pg:".length)) }))
  )
  const ready = Layer.effectDiscard(
    Effect.sync(() => screen.progress(`a runner of the cluster at ${Text.excerpt(host, 80)}:${port}\n`))
  )
  return yield* Layer.launch(orUsage(Layer.provideMerge(ready, runner), "the runner cannot start: "))
})
