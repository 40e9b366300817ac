/** A process that runs a command and a background process until it is killed. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer } from "effect"
import { Workspace } from "kernai/workspace"

const [, , name, root = "", sleep = ""] = process.argv
const layer = name === "local" ? Workspace.layerLocal({ root }) : Workspace.layerSandboxed({ root })

const program = Effect.gen(function* () {
  const workspace = yield* Workspace.Workspace
  const id = yield* workspace.start(`setsid ${sleep} & ${sleep} & echo up; wait`)
  yield* Effect.repeat(Effect.delay(workspace.output(id), "20 millis"), { until: ({ text }) => text.includes("up") })
  console.log("up")
  yield* workspace.run(sleep)
})

await Effect.runPromise(Effect.provide(program, Layer.provide(layer, NodeServices.layer)))
