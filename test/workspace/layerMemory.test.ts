import { describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { WorkspaceSuite } from "kernai/testing"
import { Workspace } from "kernai/workspace"

const open = Effect.map(Layer.build(Layer.fresh(Workspace.layerMemory())), (context) => context)

describe("a workspace in memory", () => {
  for (const { name, run } of WorkspaceSuite.checks(
    Effect.flatMap(open, (context) => Effect.provide(Workspace.Workspace, context)),
    { commands: true, processes: false }
  )) {
    it.live(name, () => run)
  }
})
