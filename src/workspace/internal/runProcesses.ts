/**
 * The background processes that runs have started in a workspace.
 */

import * as Effect from "effect/Effect"
import type { WorkspaceShape } from "./workspaceType.ts"

const startedIn = new WeakMap<WorkspaceShape, Map<string, ReadonlyArray<string>>>()

/** Starts a background process of a run. */
export const start = (workspace: WorkspaceShape, rootRunId: string, command: string) =>
  Effect.tap(workspace.start(command), (id) =>
    Effect.sync(() => {
      const started = startedIn.get(workspace) ?? new Map<string, ReadonlyArray<string>>()
      startedIn.set(workspace, started.set(rootRunId, [...(started.get(rootRunId) ?? []), id]))
    })
  )

/** Ends the background processes of a run. */
export const end = (workspace: WorkspaceShape, rootRunId: string): Effect.Effect<void> =>
  Effect.suspend(() => {
    const started = startedIn.get(workspace)
    const ids = started?.get(rootRunId) ?? []
    started?.delete(rootRunId)
    return Effect.forEach(ids, (id) => Effect.ignore(workspace.stop(id)), { discard: true })
  })
