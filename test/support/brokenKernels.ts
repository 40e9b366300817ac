/**
 * Kernels that break a promise, made of the real one on a store that lies to it.
 *
 * A checker that finds nothing wrong with these finds nothing wrong with anything.
 */
import { Effect, Layer, Option } from "effect"
import { type Call, Kernel, RunStore, type RunState } from "kernai"
import { kernelOneByOne } from "./oneByOne.ts"

const over = (lie: (store: RunStore.RunStoreShape) => RunStore.RunStoreShape) =>
  Layer.provide(kernelOneByOne, Layer.effect(RunStore.RunStore, Effect.map(RunStore.RunStore, lie)))

/** The same, which also believes itself: whatever it appended last is the head of a run. */
const blind = (lie: (store: RunStore.RunStoreShape) => RunStore.RunStoreShape) =>
  over((store) => {
    const last = new Map<string, number>()
    const lying = lie(store)
    return {
      ...lying,
      append: (records, state) => {
        last.set(state.runId, state.revision)
        return lying.append(records, state)
      },
      head: (runId) =>
        Effect.map(
          lying.head(runId),
          Option.map((head) => ({ ...head, revision: last.get(runId) ?? head.revision }))
        )
    }
  })

const at = (state: RunState.RunState, revision: number): RunState.RunState => ({
  ...state,
  turns: state.turns,
  prompt: state.prompt,
  revision
})

/** Without the revision check: who is too late stores the same decision once more, after what the other one stored. */
export const withoutRevisionCheck = blind((store) => ({
  ...store,
  append: (records, state) =>
    Effect.catchTag(store.append(records, state), "ConcurrentAppendError", ({ actual }) =>
      store.append([{ ...records[0], revision: actual + 1 }], at(state, actual + 1))
    )
}))

/** Forgets nothing it ever stored. */
export const thatHoards = over((store) => {
  const hoard: Array<string> = []
  return {
    ...store,
    append: (records, state) => {
      hoard.push(JSON.stringify(Array.from({ length: 20 }, () => records)))
      return store.append(records, state)
    }
  }
})

/** Without the launch commit: a call is in flight in memory only. */
export const withoutLaunch = blind((store) => {
  const skipped = new Map<string, number>()
  return {
    ...store,
    append: ([record], state) => {
      const behind = skipped.get(record.runId) ?? 0
      if (record.op === "launch") {
        skipped.set(record.runId, behind + 1)
        return Effect.void
      }
      const revision = record.revision - behind
      return store.append([{ ...record, revision }], at(state, revision))
    }
  }
})

/** Commits later than it says: the last record of a process is lost with it. */
export const thatAcknowledgesEarly = blind((store) => {
  let held: Parameters<RunStore.RunStoreShape["append"]> | undefined
  return {
    ...store,
    append: (records, state) => {
      const [record] = records
      if (record.revision === 1) return store.append(records, state)
      const before = held
      held = [records, state]
      const last = record.events.some((event) => event.type === "run_completed" || event.type === "paused")
      const write = before === undefined ? Effect.void : store.append(...before)
      return last
        ? Effect.andThen(
            write,
            Effect.suspend(() => ((held = undefined), store.append(records, state)))
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
  const held: Array<ReturnType<RunStore.RunStoreShape["append"]>> = []
  const flush = Effect.suspend(() => Effect.orDie(Effect.all(held.splice(0), { discard: true })))
  return {
    ...store,
    append: (records, state) =>
      Effect.suspend(() => {
        held.push(store.append(records, state))
        const isEarly = records[0].revision === 1 || records[0].events.some(({ type }) => early.has(type))
        return isEarly ? Effect.void : flush
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

const unanswered = (question: RunState.Question): RunState.Question => {
  const { answer: _, ...asked } = question
  return asked
}

/** Forgets what an earlier process was told for its tasks. */
export const thatForgetsAnswers = over((store) => {
  const told = new Set<string>()
  return {
    ...store,
    append: (records, state) => {
      if (records[0].delta.answers !== undefined) told.add(state.runId)
      return store.append(records, state)
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
