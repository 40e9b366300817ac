/** Workspaces in folders of their own, and whether this machine has what they need. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, FileSystem, Layer, type Scope } from "effect"
import { Workspace } from "kernai/workspace"
import { spawnSync } from "node:child_process"

/** Returns whether a program is installed, and prints a line if it is not. */
export const has = (program: string, ...args: ReadonlyArray<string>): boolean => {
  const isThere = spawnSync(program, args.length === 0 ? ["--version"] : args).status === 0
  if (!isThere) console.log(`NOT TESTED: ${program} is not installed or does not work here`)
  return isThere
}

/** Creates an empty folder, which is removed with the scope. */
export const folder = Effect.provide(
  FileSystem.FileSystem.use((fs) =>
    Effect.flatMap(fs.makeTempDirectoryScoped({ prefix: "kernai workspace " }), fs.realPath)
  ),
  NodeServices.layer
)

/** Builds a workspace in an empty folder. */
export const opened = (
  make: (root: string) => Layer.Layer<Workspace.Workspace, Workspace.WorkspaceError, NodeServices.NodeServices>
): Effect.Effect<Workspace.WorkspaceShape, Workspace.WorkspaceError, Scope.Scope> =>
  Effect.gen(function* () {
    const context = yield* Layer.build(
      Layer.fresh(Layer.provide(make(yield* Effect.orDie(folder)), NodeServices.layer))
    )
    return yield* Effect.provide(Workspace.Workspace, context)
  })
