/**
 * Shows which runs need somebody, by what they need, their agent and its version, and offers them to workers again.
 */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Operations from "../../Operations.ts"
import { waitReason } from "../../studio/FailureCause.ts"
import type { OpsFlags } from "../commands/opsFlags.ts"
import { usage } from "../exit.ts"
import { Screen } from "../screen.ts"
import * as Store from "../storeFlag.ts"
import { type Column, table } from "../table.ts"
import * as Text from "../terminalText.ts"
import { shortened } from "./findRun.ts"
import { ageOf } from "./listRuns.ts"

/** Prints the groups of a store, each as a line or as JSON, or the runs that were offered again. */
export const overview = Effect.fnUntraced(function* (flags: OpsFlags) {
  const { agentName: agent, need, tenant, version } = flags
  const filter = { agent, tenant, version }
  if (flags.retry && need === undefined)
    return yield* usage("--retry needs --need, so that it repeats only what it should")
  yield* Store.onRuns(
    flags.store,
    flags.retry && need !== undefined
      ? requeued({ ...filter, need }, flags.json)
      : counted({ ...filter, need }, flags.json)
  )
})

const requeued = Effect.fnUntraced(function* (filter: Parameters<typeof Operations.requeue>[0], json: boolean) {
  const screen = yield* Screen
  const runIds = yield* Operations.requeue(filter)
  if (json) return screen.out(`${Text.json({ queued: runIds })}\n`)
  screen.out(runIds.map((runId) => `queued  ${Text.flat(runId)}\n`).join(""))
  screen.progress(`${Text.count(runIds.length, "run")} offered to workers again\n`)
})

const counted = Effect.fnUntraced(function* (filter: Operations.Filter, json: boolean) {
  const screen = yield* Screen
  const now = yield* Clock.currentTimeMillis
  const groups = yield* Operations.overview(filter)
  if (json) return screen.out(groups.map((group) => `${Text.json(group)}\n`).join(""))
  if (groups.length === 0) return screen.progress("no run needs anybody\n")
  const ids = groups.map(({ oldest }) => oldest)
  const columns: ReadonlyArray<Column<Operations.Group>> = [
    { title: "needs", cell: ({ need }) => need.replace("_", " ") },
    { title: "runs", cell: ({ runs }) => String(runs) },
    { title: "agent", cell: ({ agent }) => Text.excerpt(agent, 20), rank: 1 },
    { title: "version", cell: ({ version = "" }) => Text.excerpt(version, 12), rank: 4 },
    { title: "oldest", cell: ({ oldest }) => shortened(oldest, ids), rank: 3 },
    { title: "age", cell: ({ since }) => ageOf(now - since), rank: 2 },
    { title: "reason", cell: ({ reason = "" }) => waitReason({ reason }), least: 20 }
  ]
  screen.out(table(columns, groups, screen.answers))
})
