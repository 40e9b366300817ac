/**
 * A conversation as runs of a store: message `n` of a session is the run `<session>-<n>`. Nothing else is stored.
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Call } from "../../Call.ts"
import { treeOf } from "../../store-kit/StoredRuns.ts"
import * as Kernel from "../../Kernel.ts"
import type { StoreError } from "../../KernelError.ts"
import * as Messages from "../../Message.ts"
import type { Question, RunState } from "../../RunState.ts"
import * as RunStates from "../../RunState.ts"
import * as Runs from "../../RunStore.ts"
import { RunStore } from "../../RunStore.ts"

/** The rule for session names. */
export const nameRule =
  "a session name has letters, digits, '.', '_' and '-', at most 64, and starts with a letter or a digit"

export const isName = (name: string): boolean => /^[A-Za-z0-9][\w.-]{0,63}$/.test(name)

export const isExit = (line: string): boolean => /^\/\s*(?:exit|quit)(?:\s|$)/.test(line.trim())

/** Returns the run of a message, counted from 1. */
export const runIdOf = (session: string, n: number): string => `${session}-${n}`

/** Returns how many messages a session has, by bisection: messages have no gaps. */
export const size = Effect.fnUntraced(function* (session: string): Effect.fn.Return<number, StoreError, RunStore> {
  const store = yield* RunStore
  const exists = (n: number) => Effect.map(store.head(runIdOf(session, n)), Option.isSome)
  let above = 1
  while (yield* exists(above)) above *= 2
  let last = Math.floor(above / 2)
  while (above - last > 1) {
    const middle = Math.floor((above + last) / 2)
    if (yield* exists(middle)) last = middle
    else above = middle
  }
  return last
})

export const last = Effect.fnUntraced(function* (session: string) {
  const n = yield* size(session)
  return Option.getOrUndefined(yield* RunStore.use((store) => store.load(runIdOf(session, n))))
})

/** Returns the message of a run, and its answer if there is one. */
export const exchangeOf = (state: RunState) => {
  const question = state.input.at(-1)
  return {
    question: question === undefined ? "" : Messages.text(question),
    answer: state.status.type === "completed" ? RunStates.answer(state) : undefined,
    status: state.status.type
  }
}

/** Returns the last messages of a session with their answers, oldest first. */
export const exchanges = Effect.fnUntraced(function* (session: string, limit: number) {
  const store = yield* RunStore
  const n = yield* size(session)
  const ids = Array.from({ length: Math.min(n, limit) }, (_, index) => runIdOf(session, n - index)).toReversed()
  const states = yield* Effect.forEach(ids, (id) => store.load(id))
  return states.flatMap((state) => (Option.isSome(state) ? [exchangeOf(state.value)] : []))
})

/** Returns the names of the sessions of a store, newest first. */
export const names = Effect.gen(function* () {
  const heads = yield* RunStore.use((store) => store.list({ roots: true, limit: 10_000 }))
  return [...new Set(heads.flatMap(({ runId }) => /^(.+)-\d+$/.exec(runId)?.[1] ?? []))].filter(isName)
})

/** Returns an unused session name, with a number if necessary. */
export const freeName = Effect.fnUntraced(function* (session: string) {
  const base = session.replace(/\.\d+$/, "").slice(0, 56)
  let number = 2
  while ((yield* size(`${base}.${number}`)) > 0) number++
  return `${base}.${number}`
})

const noneIfNotFound = <A, R>(calls: Effect.Effect<ReadonlyArray<A>, Runs.RunNotFound | StoreError, R>) =>
  Effect.catchTag(calls, "RunNotFound", () => Effect.succeed<ReadonlyArray<A>>([]))

/** Returns the unanswered questions of a run and its tasks. */
export const questions = (runId: string): Effect.Effect<ReadonlyArray<Question>, StoreError, RunStore> =>
  noneIfNotFound(Kernel.questions(runId))

/** Returns the calls of a run and its tasks that were started and have no known outcome. */
export const inFlight = (runId: string): Effect.Effect<ReadonlyArray<Call>, StoreError, RunStore> =>
  noneIfNotFound(Runs.inFlight(runId))

/** Returns the calls of a run and its tasks that a person allowed and that did not start. */
export const allowed = (state: RunState): Effect.Effect<ReadonlyArray<Call>, StoreError, RunStore> =>
  Effect.map(
    RunStore.use((store) => treeOf(store, state)),
    (tree) =>
      tree.flatMap(({ currentTurn, questions }) => {
        const granted = new Set(questions.flatMap(({ answer, callId }) => (answer?.approved ? [callId] : [])))
        return currentTurn?.pending.filter(({ callId }) => granted.has(callId)) ?? []
      })
  )
