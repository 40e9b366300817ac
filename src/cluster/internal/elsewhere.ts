/**
 * Other runners of the cluster, which drive the runs whose agent this one does not have.
 *
 * A run is assigned to a runner by its id, whatever agents the runner has. A runner without its agent keeps the run, and
 * lends it to another one until it is at rest. It finds one by asking entities on shards chosen at random, so there is no
 * list of agents that a rollout would have to keep.
 */

import * as Clock from "effect/Clock"
import * as EntityId from "effect/cluster/EntityId"
import { Sharding } from "effect/cluster/Sharding"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as Stream from "effect/Stream"
import { logIgnored } from "../../kit/foreignCode.ts"
import { flat } from "../../kit/text.ts"
import { monotonic } from "../../kit/time.ts"
import type { Drive, Lent, Live } from "../RunEntity.ts"
import { idOf, RunEntity } from "../RunEntity.ts"

/** Where a run is lent to while it is lent. */
export interface Guest {
  /** An entity on the runner that drives the run. */
  host: string
  /** Open while the run is lent, and while it is not. */
  readonly isLent: Latch.Latch
  readonly isHome: Latch.Latch
}

/** The other runners. */
export interface Elsewhere {
  /** Returns whether another runner has an agent, for the runs of a group of shards. */
  readonly has: (agent: string, group: string) => Effect.Effect<boolean>
  /** Lends a run to another runner. Returns `unknown` if none has its agent. */
  readonly lend: (message: Drive, agent: string, guest: Guest) => Effect.Effect<typeof Lent.Type>
  /** Emits the live events of a run until it is at rest, from this runner or from the one that it is lent to. */
  readonly live: (
    guest: Guest,
    follow: { readonly runId: string; readonly after: number },
    here: Stream.Stream<LiveOnWire>
  ) => Stream.Stream<LiveOnWire>
}

type LiveOnWire = typeof Live.Type

/** Creates a run that is not lent. */
export const guest = (): Guest => ({ host: "", isLent: Latch.makeUnsafe(), isHome: Latch.makeUnsafe(true) })

const lendTo = (guest: Guest, host: string): void => {
  guest.host = host
  guest.isHome.closeUnsafe()
  guest.isLent.openUnsafe()
}

const takeBack = (guest: Guest): void => {
  guest.isLent.closeUnsafe()
  guest.isHome.openUnsafe()
}

export const make: Effect.Effect<Elsewhere, never, Sharding> = Effect.gen(function* () {
  const sharding = yield* Sharding
  const client = yield* RunEntity.client
  const clock = yield* Clock.clockWith(Effect.succeed)
  // When an agent is looked for again that no runner had.
  const missing = new Map<string, number>()

  const isElsewhere = (host: string, group: string) =>
    !sharding.hasShardId(sharding.getShardId(EntityId.make(host), group))
  const asked = (host: string, agent: string) =>
    client(host)
      .Has({ agent })
      .pipe(
        Effect.timeout("2 seconds"),
        Effect.catchCause(() => Effect.succeed(false)),
        Effect.map((has) => (has ? Option.some(host) : Option.none()))
      )
  const find = Effect.fnUntraced(function* (agent: string, group: string) {
    const key = JSON.stringify([group, agent])
    const until = missing.get(key)
    if (until !== undefined && until > monotonic(clock)) return undefined
    const hosts = (yield* Random.shuffle(entitiesOf(group))).filter((host) => isElsewhere(host, group))
    const found = yield* Stream.fromIterable(hosts.slice(0, mostAsked)).pipe(
      Stream.mapEffect((host) => asked(host, agent), { concurrency: 4, unordered: true }),
      Stream.filter(Option.isSome),
      Stream.runHead
    )
    if (Option.isSome(found)) return found.value.value
    if (missing.size >= mostMissing) missing.clear()
    missing.set(key, monotonic(clock) + askAgain)
    return undefined
  })

  return {
    has: (agent, group) => Effect.map(find(agent, group), (host) => host !== undefined),
    lend: Effect.fnUntraced(function* (message, agent, guest) {
      const host = yield* find(agent, groupOf(message.runId))
      if (host === undefined) return { type: "unknown", agent }
      lendTo(guest, host)
      const lent = yield* client(host)
        .Lend(message)
        .pipe(
          Effect.catchCause((cause) =>
            Effect.as(logIgnored(`run ${flat(message.runId)} was lent in vain`)(cause), again)
          ),
          Effect.ensuring(Effect.sync(() => takeBack(guest)))
        )
      // The entity moved to a runner without the agent.
      return lent.type === "unknown" ? again : lent
    }),
    live: (guest, follow, here) => followed(guest, here, () => client(guest.host).Follow(follow))
  }
})

/** Emits live events from here while the run is here, and from its host while it is lent. */
const followed = <E>(
  { isHome, isLent }: Guest,
  here: Stream.Stream<LiveOnWire>,
  there: () => Stream.Stream<LiveOnWire, E>
): Stream.Stream<LiveOnWire> => {
  const lent = Stream.suspend(() => Stream.catchCause(there(), () => Stream.empty))
  // The reply about a run follows its last event.
  const thenHere = Stream.fromEffectDrain(Effect.timeoutOption(isHome.await, "1 second"))
  const live: Stream.Stream<LiveOnWire> = Stream.suspend(() =>
    isLent.isOpen()
      ? Stream.concat(Stream.concat(lent, thenHere), live)
      : Stream.concat(
          Stream.interruptWhen(here, isLent.await),
          Stream.suspend(() => (isLent.isOpen() ? live : Stream.empty))
        )
  )
  return live
}

/** Returns the group of shards of a run. */
export const groupOf = (runId: string): string => RunEntity.getShardGroup(EntityId.make(idOf(runId)))

/** Returns the ids of entities that are spread over the shards of a group. */
const entitiesOf = (group: string): ReadonlyArray<string> =>
  Array.from({ length: 300 }, (_, number) => `${group === "default" ? "" : `${group}!`}@${number}`)

const again = { type: "again" } as const

/** How many entities are asked for an agent: with ten runners, one is missed in 40,000 times. */
const mostAsked = 100

/** Milliseconds until an agent is looked for again. */
const askAgain = 2_000

const mostMissing = 1_000
