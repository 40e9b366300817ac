/**
 * Shows which runs need somebody, by what they wait for, their agent and its version.
 */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Runs from "../../RunStore.ts"
import type { OpsFlags } from "../commands/opsFlags.ts"
import { asFailure } from "../exit.ts"
import { Screen } from "../screen.ts"
import * as Store from "../storeFlag.ts"
import * as Text from "../terminalText.ts"
import { ageOf } from "./listRuns.ts"

/** What a run needs, in the order of the list. */
const needs = ["poisoned", "stuck", "unplaced", "waiting", "no answer", "failed"] as const

/** Runs that need the same, of one version of an agent. */
interface Group {
  readonly need: (typeof needs)[number]
  /** What they wait for, if they wait. */
  readonly reason: string | null
  readonly agent: string
  readonly version: string | null
  readonly runs: number
  /** The run that changed least recently, and when it did. */
  readonly oldest: string
  readonly since: number
}

/** Prints the groups of a store, each as a line or as JSON. */
export const overview = Effect.fnUntraced(function* ({ json, ...options }: OpsFlags) {
  const screen = yield* Screen
  const store = yield* Store.openExisting(options.store)
  const now = yield* Clock.currentTimeMillis
  const groups = yield* grouped(now).pipe(Effect.mapError(asFailure), Effect.provide(store.runs))
  if (json) return screen.out(groups.map((group) => `${Text.json(group)}\n`).join(""))
  if (groups.length === 0) return screen.progress("no run needs anybody\n")
  const title = ["needs", "runs", "agent", "version", "oldest", "age", "reason"]
  const rows = groups.map(({ agent, need, oldest, reason, runs, since, version }) => [
    need,
    String(runs),
    Text.excerpt(agent, 20),
    Text.excerpt(version ?? "", 12),
    Text.excerpt(oldest, 24),
    ageOf(now - since),
    Text.excerpt(reason ?? "", 40)
  ])
  screen.out(Text.table([title, ...rows], screen))
})

const open = ["queued", "running", "interrupted", "waiting", "no_answer", "failed"] as const

const page = 1_000

/** Reads the unfinished runs of a store page by page, and groups those that need somebody. */
const grouped = Effect.fnUntraced(function* (now: number) {
  const store = yield* Runs.RunStore
  const found = new Map<string, Group>()
  let after: Runs.RunHead | undefined
  do {
    const heads: ReadonlyArray<Runs.RunHead> = yield* store.list({
      status: open,
      roots: true,
      order: "oldest",
      limit: page,
      after
    })
    for (const head of heads) add(found, head, now)
    after = heads[page - 1]
  } while (after !== undefined)
  return [...found.values()].toSorted(
    (a, b) => needs.indexOf(a.need) - needs.indexOf(b.need) || b.runs - a.runs || a.since - b.since
  )
})

const add = (groups: Map<string, Group>, head: Runs.RunHead, now: number): void => {
  const need = needOf(head, now)
  if (need === undefined) return
  const { agent, runId: oldest, status, updatedAt: since } = head
  const version = head.version ?? null
  const reason = status.type === "waiting" ? status.reason : null
  const key = JSON.stringify([need, reason, agent, version])
  const known = groups.get(key)
  const runs = (known?.runs ?? 0) + 1
  const isOlder = known === undefined || since < known.since
  groups.set(key, isOlder ? { need, reason, agent, version, runs, oldest, since } : { ...known, runs })
}

/**
 * Returns what a run needs. A queued run is soon claimed by a worker with its agent, and a run with a living worker makes
 * progress or ends.
 */
const needOf = ({ status, updatedAt }: Runs.RunHead, now: number): Group["need"] | undefined => {
  const quiet = now - updatedAt
  switch (status.type) {
    case "waiting":
      return "waiting"
    case "no_answer":
      return "no answer"
    case "failed":
      return Runs.isPoisoned(status) ? "poisoned" : "failed"
    case "queued":
      return quiet > 30_000 ? "unplaced" : undefined
    case "interrupted":
      return quiet > 60_000 ? "stuck" : undefined
    case "running":
      return quiet > 600_000 ? "stuck" : undefined
    default:
      return undefined
  }
}
