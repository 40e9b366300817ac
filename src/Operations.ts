/**
 * Operates the runs of a store: shows which ones need somebody, and offers them to workers again.
 *
 * @since 0.1.0
 */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { offer, retry } from "./internal/kernel/queue.ts"
import type { AnswerError, OfferError, StoreError } from "./KernelError.ts"
import { type RunHead, RunStore, isPoisoned } from "./RunStore.ts"
import { emitOffer } from "./store-kit/Offers.ts"

/**
 * All needs, the most urgent first.
 *
 * @category getters
 * @since 0.1.0
 */
export const needs = ["poisoned", "stuck", "unplaced", "waiting", "no_answer", "failed"] as const

/**
 * What a run needs.
 *
 * - `poisoned`: workers gave it up, because their processes died of it.
 * - `stuck`: its worker died a minute ago, or nothing happened for ten minutes.
 * - `unplaced`: it was queued half a minute ago, and no worker took it; or no runner of a cluster has its agent, as
 *   `reason` says.
 * - `waiting`: a person or its host decides.
 * - `no_answer`, `failed`: it ended so.
 *
 * @category models
 * @since 0.1.0
 */
export type Need = (typeof needs)[number]

/**
 * Selects runs that need somebody.
 *
 * @category models
 * @since 0.1.0
 */
export interface Filter {
  readonly need?: Need | undefined
  readonly agent?: string | undefined
  /** Only runs that were started with this version of their agent. */
  readonly version?: string | undefined
  readonly tenant?: string | undefined
}

/**
 * Runs that need the same, of one version of an agent.
 *
 * @category models
 * @since 0.1.0
 */
export interface Group {
  readonly need: Need
  /** What they wait for. Absent unless they wait. */
  readonly reason?: string
  readonly agent: string
  readonly version?: string
  readonly runs: number
  /** The run that changed least recently, and when it did, in milliseconds since the epoch. */
  readonly oldest: string
  readonly since: number
}

/**
 * Counts the runs that need somebody, by need, agent and version.
 *
 * @category running
 * @since 0.1.0
 */
export const overview = Effect.fn("Operations.overview")(function* (
  filter: Filter = {}
): Effect.fn.Return<ReadonlyArray<Group>, StoreError, RunStore> {
  const groups = yield* Stream.runFold(needy(filter), () => new Map<string, Group>(), add)
  return [...groups.values()].toSorted(
    (a, b) => needs.indexOf(a.need) - needs.indexOf(b.need) || b.runs - a.runs || a.since - b.since
  )
})

/**
 * Offers the runs with a need to workers again, and returns their ids: those that failed, got no answer, were given up or
 * were paused by a hook as `Kernel.retry` does, and those that are stuck or unplaced. Runs that ask a person stay as they
 * are.
 *
 * @example
 * const runIds = yield* Operations.requeue({ need: "poisoned", agent: "clerk" })
 *
 * @category running
 * @since 0.1.0
 */
export const requeue = Effect.fn("Operations.requeue")(function* (
  filter: Filter & { readonly need: Need }
): Effect.fn.Return<ReadonlyArray<string>, StoreError, RunStore> {
  const store = yield* RunStore
  const offered = (need: Need, { revision, runId }: RunHead): Effect.Effect<boolean, AnswerError | OfferError> =>
    need === "stuck" || need === "unplaced"
      ? Effect.as(offer(store, runId, "operator"), true)
      : retry(store, runId, { revision, workerId: "operator" })
  const runs = yield* Stream.runCollect(needy(filter))
  const requeued: Array<string> = []
  for (const { head, need } of runs) {
    const isOffered = yield* offered(need, head).pipe(
      // Something else happened to the run in the meantime, so it needs this no longer.
      Effect.catchIf(
        (error) => error._tag !== "StoreError",
        () => Effect.succeed(false)
      )
    )
    if (!isOffered) continue
    emitOffer(store, head.runId)
    requeued.push(head.runId)
  }
  return requeued
})

interface Needy {
  readonly need: Need
  readonly head: RunHead
}

/** Emits the root runs of a store that need somebody, oldest first. */
const needy = ({ agent, need: wanted, tenant, version }: Filter): Stream.Stream<Needy, StoreError, RunStore> =>
  Stream.unwrap(
    Effect.map(Clock.currentTimeMillis, (now) =>
      Stream.paginate(undefined, (after: RunHead | undefined) =>
        Effect.map(
          RunStore.use((store) =>
            store.list({ status: open, roots: true, order: "oldest", limit: page, agent, tenant, after })
          ),
          (heads) => [
            heads.flatMap((head): ReadonlyArray<Needy> => {
              const need = needOf(head, now)
              const isWanted = need === (wanted ?? need) && head.version === (version ?? head.version)
              return need === undefined || !isWanted ? [] : [{ need, head }]
            }),
            Option.fromUndefinedOr(heads[page - 1])
          ]
        )
      )
    )
  )

const open = ["queued", "running", "interrupted", "waiting", "no_answer", "failed"] as const

const page = 1_000

const add = (groups: Map<string, Group>, { head, need }: Needy): Map<string, Group> => {
  const { agent, runId: oldest, status, updatedAt: since, version } = head
  const reason = status.type === "waiting" || status.type === "queued" ? status.reason : undefined
  const key = JSON.stringify([need, reason, agent, version])
  const known = groups.get(key)
  const runs = (known?.runs ?? 0) + 1
  const isOlder = known === undefined || since < known.since
  const facts = { ...(reason === undefined ? {} : { reason }), ...(version === undefined ? {} : { version }) }
  return groups.set(key, isOlder ? { need, ...facts, agent, runs, oldest, since } : { ...known, runs })
}

/**
 * Returns what a run needs. A queued run is soon claimed by a worker with its agent, and a run with a living worker makes
 * progress or ends.
 */
const needOf = ({ status, updatedAt }: RunHead, now: number): Need | undefined => {
  const quiet = now - updatedAt
  switch (status.type) {
    case "waiting":
    case "no_answer":
      return status.type
    case "failed":
      return isPoisoned(status) ? "poisoned" : "failed"
    case "queued":
      return quiet > 30_000 || status.reason !== undefined ? "unplaced" : undefined
    case "interrupted":
      return quiet > 60_000 ? "stuck" : undefined
    case "running":
      return quiet > 600_000 ? "stuck" : undefined
    default:
      return undefined
  }
}
