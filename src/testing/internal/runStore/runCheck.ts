/**
 * What the checks of a run store share.
 */

import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as assert from "node:assert/strict"
import type { ConcurrentAppendError, StoreError } from "../../../KernelError.ts"
import type { RunState } from "../../../RunState.ts"
import { advance } from "../../../RunState.ts"
import type * as RunStore from "../../../RunStore.ts"
import type { Commit } from "../sampleJournal.ts"

/** A sentence, and what it means for two stores on the same runs. */
export interface Check {
  readonly name: string
  readonly body: (one: RunStore.RunStoreShape, two: RunStore.RunStoreShape) => Effect.Effect<void, unknown>
}

/** Stores commits of one run, from its first or from a later one on. */
export const put = (store: RunStore.RunStoreShape, commits: ReadonlyArray<Commit>) =>
  Effect.forEach(
    commits,
    ({ record, state }): Effect.Effect<void, unknown> =>
      record.revision === 1 ? store.create(record, state) : store.commit(record, state),
    { discard: true }
  )

/** Commits of one run at once, where the store can. */
export const putAll = (
  store: RunStore.RunStoreShape,
  commits: ReadonlyArray<Commit>
): Effect.Effect<void, ConcurrentAppendError | StoreError> => {
  const records = commits.map(({ record }) => record)
  const states = commits.map(({ state }) => state)
  return store.commitAll !== undefined && Arr.isArrayNonEmpty(records) && Arr.isArrayNonEmpty(states)
    ? store.commitAll(records, states)
    : Effect.forEach(commits, ({ record, state }) => store.commit(record, state), { discard: true })
}

/** Loads a run and goes on with it, as a worker that resumes does. */
export const resume = Effect.fnUntraced(function* (
  store: RunStore.RunStoreShape,
  runId: string,
  commits: ReadonlyArray<Commit>
) {
  let state = Option.getOrUndefined(yield* store.load(runId))
  for (const { record } of commits) {
    state = advance(state, record)
    yield* store.commit(record, state)
  }
})

/** The state a store gives is the one that was committed. */
export const loads = (store: RunStore.RunStoreShape, { state }: Commit) =>
  Effect.map(store.load(state.runId), (loaded) => {
    assert.deepEqual(Option.map(loaded, plain), Option.some(plain(state)))
  })

/** A state as plain data: how it was made is its own affair. */
const plain = (state: RunState): RunState => ({ ...state, turns: state.turns, prompt: state.prompt })

/** The failure of what a store must refuse. */
export const refused = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<E, never, R> =>
  Effect.matchEffect(effect, {
    onFailure: Effect.succeed,
    onSuccess: () => Effect.die(new assert.AssertionError({ message: "the store accepted what it must refuse" }))
  })

/** The failure of an effect that must fail, by its tag. */
export const tagOf = <A, E extends { readonly _tag: string }>(effect: Effect.Effect<A, E>): Effect.Effect<string> =>
  Effect.map(refused(effect), (error) => error._tag)
