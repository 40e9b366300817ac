/**
 * Takes back what a stored run changed in its workspace.
 */

import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { RunStore } from "../../RunStore.ts"
import * as WorkspaceHistory from "../../workspace/WorkspaceHistory.ts"
import type { UndoFlags } from "../commands/runsFlags.ts"
import { asFailure, usage } from "../exit.ts"
import { find } from "../runs/findRun.ts"
import { Screen } from "../screen.ts"
import * as Settings from "../settings.ts"
import * as Store from "../storeFlag.ts"
import * as Text from "../terminalText.ts"
import { layerOf } from "./openWorkspace.ts"
import { restoredText } from "./workText.ts"

/** Restores the files of a run. */
export const undo = Effect.fnUntraced(function* ({ force, id, json, store, turn, workspace }: UndoFlags) {
  const screen = yield* Screen
  const newer = yield* Settings.ofFlags({ workspace })
  const opened = yield* Store.openExisting(store)
  yield* Effect.gen(function* () {
    const runId = yield* find(id)
    const state = Option.getOrUndefined(yield* RunStore.use((runs) => runs.load(runId)))
    const root = newer.workspace ?? Settings.ofRun(state).workspace
    if (root === undefined)
      return yield* usage(`the run ${Text.excerpt(id, 80)} has no workspace; name it with --workspace`)
    const restored = yield* Effect.provide(WorkspaceHistory.undo(runId, { turn, force }), layerOf(root, false))
    screen.out(json ? `${Text.json({ runId, ...restored })}\n` : `${restoredText(restored)}\n`)
  }).pipe(Effect.mapError(asFailure), Effect.provide(Layer.merge(opened.runs, opened.media)))
})
