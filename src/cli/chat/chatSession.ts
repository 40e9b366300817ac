/**
 * A conversation as runs in a store: message `n` of a session is the run `<session>-<n>`.
 *
 * Nothing else is kept. What a chat knows when it starts, it reads here.
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Call } from "../../Call.ts"
import * as ChatHistory from "../../ChatHistory.ts"
import * as Calls from "../../internal/store/inFlight.ts"
import * as Offers from "../../internal/loop/queue.ts"
import type { StoreError } from "../../KernelError.ts"
import type { Message } from "../../Message.ts"
import * as Messages from "../../Message.ts"
import type { Question, RunState } from "../../RunState.ts"
import * as RunStates from "../../RunState.ts"
import { RunStore } from "../../RunStore.ts"

/** What the name of a session is, as whoever gave another is told. */
export const nameRule =
  "the name of a session is of letters, digits, '.', '_' and '-', 64 at most, and begins with a letter or a digit"

/** Tells whether a text can be the name of a session. */
export const isName = (name: string): boolean => /^[A-Za-z0-9][\w.-]{0,63}$/.test(name)

/** The run of a message, counted from 1. */
export const runIdOf = (session: string, n: number): string => `${session}-${n}`

/** How many messages a session has. */
export const size = Effect.fnUntraced(function* (session: string): Effect.fn.Return<number, StoreError, RunStore> {
  const store = yield* RunStore
  const isThere = (n: number) => Effect.map(store.head(runIdOf(session, n)), Option.isSome)
  // Messages have no gaps: the last one is found by halves.
  let above = 1
  while (yield* isThere(above)) above *= 2
  let last = Math.floor(above / 2)
  while (above - last > 1) {
    const middle = Math.floor((above + last) / 2)
    if (yield* isThere(middle)) last = middle
    else above = middle
  }
  return last
})

/** The run of the last message, if there is one. */
export const last = Effect.fnUntraced(function* (
  session: string
): Effect.fn.Return<RunState | undefined, StoreError, RunStore> {
  const n = yield* size(session)
  return n === 0 ? undefined : yield* load(runIdOf(session, n))
})

/** What was said so far, as the history of the next message. */
export const history = (session: string): Effect.Effect<ReadonlyArray<Message>, StoreError, RunStore> =>
  Effect.map(last(session), (state) => (state === undefined ? [] : ChatHistory.ofState(state)))

/** A message and what became of it. */
export interface Exchange {
  readonly asked: string
  /** Undefined while there is no answer. */
  readonly answered: string | undefined
  readonly status: string
}

/** The last messages of a session with their answers, oldest first. */
export const exchanges = Effect.fnUntraced(function* (
  session: string,
  count: number
): Effect.fn.Return<ReadonlyArray<Exchange>, StoreError, RunStore> {
  const until = yield* size(session)
  const found: Array<Exchange> = []
  for (let n = Math.max(1, until - count + 1); n <= until; n++) {
    const state = yield* load(runIdOf(session, n))
    if (state === undefined) continue
    const question = state.input.at(-1)
    found.push({
      asked: question === undefined ? "" : Messages.text(question),
      answered: state.status.type === "completed" ? RunStates.answer(state) : undefined,
      status: state.status.type
    })
  }
  return found
})

/** The names of the sessions of a store, the newest first. */
export const names: Effect.Effect<ReadonlyArray<string>, StoreError, RunStore> = Effect.gen(function* () {
  const store = yield* RunStore
  const heads = yield* store.list({ roots: true, limit: 10_000 })
  return [...new Set(heads.flatMap(({ runId }) => /^(.+)-\d+$/.exec(runId)?.[1] ?? []))].filter(isName)
})

/** A name that no session has: the same with a number. */
export const freeName = Effect.fnUntraced(function* (session: string): Effect.fn.Return<string, StoreError, RunStore> {
  const store = yield* RunStore
  const base = session.replace(/\.\d+$/, "").slice(0, 56)
  let number = 2
  while (Option.isSome(yield* store.head(runIdOf(`${base}.${number}`, 1)))) number++
  return `${base}.${number}`
})

/** The questions of a run and of its tasks that nobody answered. */
export const questions = (runId: string): Effect.Effect<ReadonlyArray<Question>, StoreError, RunStore> =>
  RunStore.use((store) => Offers.questions(store, runId)).pipe(Effect.catchTag("RunNotFound", () => Effect.succeed([])))

/** The calls of a run and of its tasks of which nobody knows whether they ran. */
export const inFlight = (runId: string): Effect.Effect<ReadonlyArray<Call>, StoreError, RunStore> =>
  RunStore.use((store) => Calls.inFlight(store, runId)).pipe(Effect.catchTag("RunNotFound", () => Effect.succeed([])))

/** The calls of a run and of its tasks that a person allowed, and that were not begun. */
export const allowed = (state: RunState): Effect.Effect<ReadonlyArray<Call>, StoreError, RunStore> =>
  RunStore.use((store) => Offers.treeOf(store, state)).pipe(
    Effect.map((tree) =>
      tree.flatMap(({ questions, currentTurn }) => {
        const granted = new Set(questions.flatMap(({ answer, callId }) => (answer?.approved ? [callId] : [])))
        return currentTurn?.pending.filter(({ callId }) => granted.has(callId)) ?? []
      })
    )
  )

// ---------------------------------------------------------------- helpers

const load = (runId: string) =>
  Effect.map(
    RunStore.use((store) => store.load(runId)),
    Option.getOrUndefined
  )
