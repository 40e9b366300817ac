import { Array as Arr, Clock, Effect, Option, Stream } from "effect"
import { RunStore } from "kernai"
import { RunStoreSuite } from "../../src/testing/index.ts"
import { type Mutation as MutationOf, sees } from "../support/mutations.ts"
import { oneByOne } from "../support/oneByOne.ts"

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
    append: (records, state) =>
      Effect.catchTag(store.append(records, state), "ConcurrentAppendError", () => Effect.void)
  }),
  "takes another's records for the same": (store) => ({
    append: (records, state) =>
      Effect.catchTag(store.append(records, state), "ConcurrentAppendError", (error) =>
        error.actual >= state.revision ? Effect.void : Effect.fail(error)
      )
  }),
  "refuses what it stored already": (store) => ({
    append: (records, state) =>
      Effect.flatMap(store.head(state.runId), (head) => {
        const actual = Option.isSome(head) ? head.value.revision : 0
        const [{ revision, runId }] = records
        return actual >= revision && revision > 1
          ? Effect.fail(new RunStore.ConcurrentAppendError({ runId, expected: revision - 1, actual }))
          : store.append(records, state)
      })
  }),
  "overwrites a run that is there": (store) => ({
    append: (records, state) => Effect.catchTag(store.append(records, state), "RunExists", () => Effect.void)
  }),
  "gives a lease that another holds": (store) => ({
    acquire: (runId, claim) => Effect.catchTag(store.acquire(runId, claim), "RunBusy", () => Effect.void)
  }),
  "holds a run that was only offered": (store) => ({
    offers: undefined,
    acquire: (runId, claim) => store.acquire(runId, { ...claim, lease: claim.lease === 0 ? "1 minute" : claim.lease })
  }),
  "gives a lease whatever the worker saw": (store) => ({
    acquire: (runId, { lease, workerId }) => store.acquire(runId, { lease, workerId })
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
  "lists every id": without("prefix"),
  "does not search": without("search"),
  "lists what is leased": without("unleased"),
  "lists the oldest first": (store) => ({
    list: (filter) => Effect.map(store.list(filter), (heads) => heads.toReversed())
  }),
  "removes nothing": () => ({ remove: () => Effect.void }),
  "loses negative zeros": (store) => ({
    read: (runId, from) => Stream.map(store.read(runId, from), (record) => JSON.parse(JSON.stringify(record)))
  }),
  "takes values that are no JSON": (store) => ({
    append: (records, state) => Effect.catchTag(store.append(records, state), "StoreError", () => Effect.void)
  }),
  "stores records one by one, up to the first that is refused": (store) => ({
    append: (records, state) => oneByOne(store).append(records, state)
  }),
  "confuses ids": (store) => ({
    load: (runId) => store.load(runId.toWellFormed()),
    append: (records, state) =>
      store.append(
        Arr.map(records, (record) => ({ ...record, runId: record.runId.toWellFormed() })),
        { ...state, runId: state.runId.toWellFormed(), turns: state.turns, prompt: state.prompt }
      )
  })
}

sees(
  "RunStoreSuite",
  (mutate) =>
    Effect.map(Effect.provideService(RunStore.makeMemory, Clock.Clock, Clock.Clock.defaultValue()), (store) =>
      RunStoreSuite.checks(Effect.succeed({ ...store, ...mutate(store) }))
    ),
  mutations
)
