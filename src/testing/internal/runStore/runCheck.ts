/** Helpers of the checks of a run store. */

import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as assert from "node:assert/strict"
import type { ConcurrentAppendError, RunExists, StoreError } from "../../../KernelError.ts"
import type { RunState } from "../../../RunState.ts"
import { advance } from "../../../RunState.ts"
import type * as RunStore from "../../../RunStore.ts"
import type { Commit } from "../sampleJournal.ts"

/** A sentence, and its check of two stores on the same runs. */
export interface Check {
  readonly name: string
  readonly body: (one: RunStore.RunStoreShape, two: RunStore.RunStoreShape) => Effect.Effect<void, unknown>
}

/** Appends commits of one run one by one. */
export const put = (store: RunStore.RunStoreShape, commits: ReadonlyArray<Commit>) =>
  Effect.forEach(commits, ({ record, state }) => store.append([record], state), { discard: true })

/** Appends commits of one run all at once. */
export const putAll = (
  store: RunStore.RunStoreShape,
  commits: ReadonlyArray<Commit>
): Effect.Effect<void, AppendError> => {
  const records = commits.map(({ record }) => record)
  const last = commits.at(-1)
  return last !== undefined && Arr.isArrayNonEmpty(records) ? store.append(records, last.state) : Effect.void
}

type AppendError = ConcurrentAppendError | RunExists | StoreError

/** Loads a run and appends more commits to it, like a worker that resumes it. */
export const resume = Effect.fnUntraced(function* (
  store: RunStore.RunStoreShape,
  runId: string,
  commits: ReadonlyArray<Commit>
) {
  let state = Option.getOrUndefined(yield* store.load(runId))
  for (const { record } of commits) {
    state = advance(state, record)
    yield* store.append([record], state)
  }
})

/** Checks that a store returns the state of a commit. */
export const loads = (store: RunStore.RunStoreShape, { state }: Commit) =>
  Effect.map(store.load(state.runId), (loaded) => {
    assert.deepEqual(Option.map(loaded, plain), Option.some(plain(state)))
  })

/** Returns a state as plain data, whatever its class. */
const plain = (state: RunState): RunState => ({ ...state, turns: state.turns, prompt: state.prompt })

/** Returns the failure of an operation that a store must refuse. */
export const refused = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<E, never, R> =>
  Effect.matchEffect(effect, {
    onFailure: Effect.succeed,
    onSuccess: () => Effect.die(new assert.AssertionError({ message: "the store accepted what it must refuse" }))
  })

/** Returns the tag of the failure of an effect that must fail. */
export const tagOf = <A, E extends { readonly _tag: string }>(effect: Effect.Effect<A, E>): Effect.Effect<string> =>
  Effect.map(refused(effect), (error) => error._tag)
