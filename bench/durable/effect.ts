/** Workflows of effect/cluster on a `SingleRunner` as a side of the comparison of durable runs. */
import * as NodeCrypto from "@effect/platform-node/NodeCrypto"
import * as PgClient from "@effect/sql-pg/PgClient"
import { Effect, Layer, Logger, ManagedRuntime, Redacted, Schema } from "effect"
import { ClusterWorkflowEngine, SingleRunner } from "effect/cluster"
import { Activity, Workflow } from "effect/workflow"
import { type Peer, steps } from "../durableSide.ts"

const Work = Workflow.make("Work", {
  payload: { id: Schema.String },
  idempotencyKey: ({ id }) => id,
  success: Schema.String
})

const work = Work.toLayer(
  Effect.fnUntraced(function* () {
    for (let step = 0; step < steps; step++) {
      const turn = yield* Activity.make({ name: `model${step}`, success: Schema.Int, execute: Effect.succeed(step) })
      yield* Activity.make({ name: `pay${step}`, success: Schema.String, execute: Effect.succeed(`paid ${turn}`) })
    }
    return "done"
  })
)

export const open = async (url: string): Promise<Peer> => {
  const layer = work.pipe(
    Layer.provideMerge(ClusterWorkflowEngine.layer),
    Layer.provideMerge(SingleRunner.layer({ runnerStorage: "memory" })),
    Layer.provide([PgClient.layer({ url: Redacted.make(url) }), NodeCrypto.layerDigest]),
    Layer.provideMerge(Logger.layer([]))
  )
  const runtime = ManagedRuntime.make(layer)
  await runtime.runPromise(Effect.sleep(3_000))
  return { run: (id) => runtime.runPromise(Work.execute({ id })) }
}
