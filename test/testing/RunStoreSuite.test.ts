import { Effect, Option, Stream } from "effect"
import { RunStore } from "kernai"
import { RunStoreSuite } from "../../src/testing/index.ts"
import { type Mutation as MutationOf, sees } from "../support/mutations.ts"

type Mutation = MutationOf<RunStore.RunStoreShape>

const without =
  (name: keyof RunStore.RunFilter): Mutation =>
  (store) => ({
    list: (filter = {}) => {
      const rest = { ...filter }
      delete rest[name]
      return store.list(rest)
    }
  })

/** Stores that do one thing wrong. */
const mutations: { readonly [name: string]: Mutation } = {
  "forgets to check the revision": (store) => ({
    commit: (record, state) => Effect.catchTag(store.commit(record, state), "ConcurrentAppendError", () => Effect.void)
  }),
  "overwrites a run that is there": (store) => ({
    create: (record, state) => Effect.catchTag(store.create(record, state), "RunExists", () => Effect.void)
  }),
  "gives a lease that another holds": (store) => ({
    acquire: (runId, lease, now) => Effect.catchTag(store.acquire(runId, lease, now), "RunBusy", () => Effect.void)
  }),
  "holds a lease a moment too long": (store) => ({
    acquire: (runId, lease, now) => store.acquire(runId, lease, now - 1)
  }),
  "says nothing of a lease": (store) => ({
    head: (runId) =>
      Effect.map(
        store.head(runId),
        Option.map((head) => ({ ...head, lease: undefined }))
      )
  }),
  "reads from the beginning": (store) => ({ read: (runId) => store.read(runId) }),
  "tells followers everything twice": (store) => ({
    tail: (runId, from) => Stream.flatMap(store.tail(runId, from), (record) => Stream.make(record, record))
  }),
  "lists more than asked for": without("limit"),
  "lists every status": without("status"),
  "knows one order alone": without("order"),
  "begins each page anew": without("after"),
  "does not search": without("search"),
  "lists what is leased": without("unleasedAt"),
  "lists the oldest first": (store) => ({
    list: (filter) => Effect.map(store.list(filter), (heads) => heads.toReversed())
  }),
  "removes nothing": () => ({ remove: () => Effect.void }),
  "loses negative zeros": (store) => ({
    read: (runId, from) => Stream.map(store.read(runId, from), (record) => JSON.parse(JSON.stringify(record)))
  }),
  "takes values that are no JSON": (store) => ({
    commit: (record, state) => Effect.catchTag(store.commit(record, state), "StoreError", () => Effect.void)
  }),
  "looks only at the first of several records": (store) => ({
    commitAll: ([first, ...records], [state, ...states]) =>
      Effect.andThen(
        store.commit(first, state),
        Effect.forEach(
          records,
          (record, index) =>
            Effect.catchTag(store.commit(record, states[index] ?? state), "ConcurrentAppendError", () => Effect.void),
          { discard: true }
        )
      )
  }),
  "takes records of several runs at once": (store) => ({
    commitAll: (records, states) =>
      Effect.forEach(records, (record, index) => store.commit(record, states[index] ?? states[0]), { discard: true })
  }),
  "confuses ids": (store) => ({
    load: (runId) => store.load(runId.toWellFormed()),
    create: (record, state) => store.create({ ...record, runId: record.runId.toWellFormed() }, state)
  })
}

sees(
  "RunStoreSuite",
  (mutate) =>
    Effect.map(RunStore.makeMemory, (store) => RunStoreSuite.checks(Effect.succeed({ ...store, ...mutate(store) }))),
  mutations
)
