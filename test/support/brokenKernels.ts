/**
 * Kernels that break a promise, made of the real one on a store that lies to it.
 *
 * A checker that finds nothing wrong with these finds nothing wrong with anything.
 */
import { Effect, Layer, Option } from "effect"
import { type Call, Kernel, RunStore, type RunState } from "kernai"

const over = (lie: (store: RunStore.RunStoreShape) => RunStore.RunStoreShape) =>
  Kernel.layerNoProvider.pipe(
    Layer.provide(
      Layer.effect(
        RunStore.RunStore,
        Effect.map(RunStore.RunStore, (store) => lie(RunStore.eachRevision(store)))
      )
    )
  )

const at = (state: RunState.RunState, revision: number): RunState.RunState => ({
  ...state,
  turns: state.turns,
  prompt: state.prompt,
  revision
})

/** Without the revision check: who is too late stores the same decision once more, after what the other one stored. */
export const withoutRevisionCheck = over((store) => ({
  ...store,
  commit: (record, state) =>
    Effect.catchTag(store.commit(record, state), "ConcurrentAppendError", ({ actualSeq }) =>
      store.commit({ ...record, revision: actualSeq + 1 }, at(state, actualSeq + 1))
    )
}))

/** Forgets nothing it ever stored. */
export const thatHoards = over((store) => {
  const hoard: Array<string> = []
  return {
    ...store,
    commit: (record, state) => {
      hoard.push(JSON.stringify(Array.from({ length: 20 }, () => record)))
      return store.commit(record, state)
    }
  }
})

/** Without the launch commit: a call is in flight in memory only. */
export const withoutLaunch = over((store) => {
  const skipped = new Map<string, number>()
  return {
    ...store,
    commit: (record, state) => {
      const behind = skipped.get(record.runId) ?? 0
      if (record.op === "launch") {
        skipped.set(record.runId, behind + 1)
        return Effect.void
      }
      const revision = record.revision - behind
      return store.commit({ ...record, revision }, at(state, revision))
    }
  }
})

/** Commits later than it says: the last record of a process is lost with it. */
export const thatAcknowledgesEarly = over((store) => {
  let held: readonly [RunState.RunRecord, RunState.RunState] | undefined
  return {
    ...store,
    commit: (record, state) => {
      const before = held
      held = [record, state]
      const last = record.events.some((event) => event.type === "run_completed" || event.type === "paused")
      const write = before === undefined ? Effect.void : store.commit(...before)
      return last
        ? Effect.andThen(
            write,
            Effect.suspend(() => ((held = undefined), store.commit(record, state)))
          )
        : write
    }
  }
})

/** Launches without looking: says at every resume that what was in flight may run again. */
export const thatRetriesInFlight = Layer.effect(
  Kernel.Kernel,
  Effect.map(Effect.zip(Kernel.Kernel, RunStore.RunStore), ([kernel, store]): Kernel.KernelShape => ({
    ...kernel,
    resume: (agent, runId, options) =>
      Effect.flatMap(Effect.orDie(store.load(runId)), (state) => {
        const inFlight = Option.isSome(state) ? (state.value.currentTurn?.inFlight ?? []) : []
        const replay = Object.fromEntries(inFlight.map((call) => [call.callId, "retry" as const]))
        return kernel.resume(agent, runId, { ...options, recover: { ...options?.recover, ...replay } })
      })
  }))
).pipe(Layer.provide(Kernel.layerNoProvider))

const early: ReadonlySet<string> = new Set(["turn_started", "turn_prepared", "model_started"])

/** Stores what it says when it must, and asks the model before that. */
export const thatStoresLate = over((store) => {
  const held: Array<Effect.Effect<void, RunStore.RunExists | RunStore.ConcurrentAppendError | RunStore.StoreError>> = []
  const flush = Effect.suspend(() => Effect.orDie(Effect.all(held.splice(0), { discard: true })))
  return {
    ...store,
    create: (record, state) => Effect.sync(() => void held.push(store.create(record, state))),
    commit: (record, state) =>
      Effect.suspend(() => {
        held.push(store.commit(record, state))
        return record.events.some(({ type }) => early.has(type)) ? Effect.void : flush
      })
  }
})

const inTurn = (
  store: RunStore.RunStoreShape,
  change: (turn: RunState.Turn) => RunState.Turn
): RunStore.RunStoreShape => ({
  ...store,
  load: (runId) =>
    Effect.map(
      store.load(runId),
      Option.map((state) => {
        const { currentTurn } = state
        return currentTurn === undefined ? state : { ...at(state, state.revision), currentTurn: change(currentTurn) }
      })
    )
})

/** Runs what was in flight once more with something else. */
export const thatChangesInput = over((store) =>
  inTurn(store, (turn) => ({ ...turn, inFlight: turn.inFlight.map((call) => ({ ...call, input: { to: "another" } })) }))
)

/** Runs what has a response once more. */
export const thatForgetsResponses = over((store) =>
  inTurn(store, (turn) => ({
    ...turn,
    pending: turn.completed
      .map(({ input, kind, callId, name }): Call.Call => ({
        callId,
        name,
        input,
        kind,
        review: "accepted"
      }))
      .concat(turn.pending),
    completed: []
  }))
)

const unanswered = (approval: RunState.Question): RunState.Question => {
  const { answer: _, ...asked } = approval
  return asked
}

/** Forgets what an earlier process was told for its tasks. */
export const thatForgetsAnswers = over((store) => {
  const told = new Set<string>()
  return {
    ...store,
    commit: (record, state) => {
      if (record.delta.answers !== undefined) told.add(record.runId)
      return store.commit(record, state)
    },
    load: (runId) =>
      Effect.map(
        store.load(runId),
        Option.map((state) =>
          state.depth === 0 || told.has(runId)
            ? state
            : { ...at(state, state.revision), questions: state.questions.map(unanswered) }
        )
      )
  }
})

/** All of them by name. */
const all: { readonly [name: string]: typeof Kernel.layerNoProvider } = {
  withoutRevisionCheck,
  withoutLaunch,
  thatHoards,
  thatStoresLate,
  thatChangesInput,
  thatForgetsResponses,
  thatForgetsAnswers,
  thatAcknowledgesEarly,
  thatRetriesInFlight
}

/** The one of a name. */
export const named = (name: string): typeof Kernel.layerNoProvider => {
  const found = all[name]
  if (found === undefined) throw new Error(`no kernel is broken like that: ${name}`)
  return found
}
