/**
 * The conversations of a caller. Each question is a run, and the ids of the runs begin with the id of the conversation.
 * A name that a person gave a conversation is a note of the store.
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { asProblem, type HttpProblem, Invalid } from "../../http/HttpProblem.ts"
import type { CallerRuns } from "../../http/ServedRuns.ts"
import { sha256 } from "../../kit/sha256.ts"
import { MediaStore, type MediaStoreShape } from "../../MediaStore.ts"
import { prune, type RunHead, RunStore, type RunStoreShape } from "../../RunStore.ts"
import { placeIn, placeText } from "../../store-kit/StoreRules.ts"
import type { Facts } from "./runFacts.ts"

/** The stores of the conversations. */
export interface Stores {
  readonly store: RunStoreShape
  readonly media: MediaStoreShape
  readonly factsOf: (head: RunHead) => Effect.Effect<Facts>
}

/** A conversation in a list. */
export interface ConversationLine {
  readonly id: string
  readonly agent: string
  /** The first words of its first question, or of the one that was found. */
  readonly words: string
  /** When its last run changed, or the one that was found. */
  readonly at: number
  /** The name that a person gave it. */
  readonly name?: string
}

/** A page of conversations. `next` is absent on the last one. */
export interface ConversationPage {
  readonly lines: ReadonlyArray<ConversationLine>
  readonly next?: string
}

interface Search {
  readonly search?: string
  /** `next` of the previous page. */
  readonly after?: string
}

/** Runs of a page. A conversation of many runs may be on several pages. */
const pageSize = 100

/** Returns a page of conversations, those with the newest runs first. */
export const list = ({ factsOf, store }: Stores, runs: CallerRuns) =>
  Effect.fnUntraced(function* ({ after, search = "" }: Search): Effect.fn.Return<ConversationPage, HttpProblem> {
    const prefix = runs.idOf("chat.")
    const isSearch = search.trim() !== ""
    const heads = yield* asProblem("list")(
      store.list({
        prefix,
        roots: true,
        limit: pageSize,
        ...(isSearch ? { search } : {}),
        after: after === undefined ? undefined : placeIn(after)
      })
    )
    const names = yield* namesOf(store, runs)
    const found = new Map<string, RunHead>()
    for (const head of heads) {
      const id = head.runId.slice(prefix.length).split(".", 1)[0] ?? ""
      if (!found.has(id)) found.set(id, head)
    }
    const lines = yield* Effect.forEach(found, ([id, head]) =>
      Effect.gen(function* () {
        const first = isSearch ? head : yield* firstOf(store, `${prefix}${id}.1`, head)
        const { words } = yield* factsOf(first)
        const name = names.get(id)
        return { id, agent: head.agent, at: head.updatedAt, words, ...(name === undefined ? {} : { name }) }
      })
    )
    const last = heads.at(-1)
    return { lines, ...(heads.length === pageSize && last !== undefined ? { next: placeText(last) } : {}) }
  })

const firstOf = (store: RunStoreShape, runId: string, other: RunHead) =>
  Effect.map(
    asProblem(runId)(store.head(runId)),
    Option.getOrElse(() => other)
  )

// ---------------------------------------------------------------- names

/** The key of the names of a caller. The id of a caller can be longer than a key. */
const keyOf = (runs: CallerRuns) => Effect.map(sha256(runs.idOf("chat.")), (digest) => `chat/${digest.slice(0, 32)}/`)

const namesOf = Effect.fnUntraced(function* (
  store: RunStoreShape,
  runs: CallerRuns
): Effect.fn.Return<ReadonlyMap<string, string>, HttpProblem> {
  if (store.notes === undefined) return new Map()
  const prefix = yield* keyOf(runs)
  const notes = yield* asProblem("list")(store.notes.list(prefix))
  return new Map(notes.map(({ key, text }) => [key.slice(prefix.length), text]))
})

/** Names a conversation. An empty name takes its name away. */
export const rename = Effect.fnUntraced(function* (
  { store }: Stores,
  runs: CallerRuns,
  id: string,
  name: string
): Effect.fn.Return<void, HttpProblem> {
  if (store.notes === undefined) return yield* new Invalid({ detail: "this store keeps no names" })
  yield* runs.head(firstRun(id))
  yield* asProblem(id)(store.notes.set(`${yield* keyOf(runs)}${id}`, name === "" ? undefined : name))
})

const firstRun = (id: string): string => `chat.${id}.1`

// ---------------------------------------------------------------- the end

const atWork = ["queued", "running", "waiting", "interrupted"] as const
const ended = ["completed", "no_answer", "failed", "cancelled"] as const

/**
 * Cancels what still runs in a conversation, and deletes its runs with their media. A run from which a run was forked
 * that has not ended stays.
 */
export const remove = Effect.fnUntraced(function* (
  { media, store }: Stores,
  runs: CallerRuns,
  id: string
): Effect.fn.Return<ReadonlyArray<string>, HttpProblem> {
  yield* runs.head(firstRun(id))
  const prefix = runs.idOf(`chat.${id}.`)
  const open = yield* asProblem(id)(store.list({ prefix, roots: true, status: atWork }))
  yield* Effect.forEach(open, ({ runId }) => runs.cancel(runId, "the conversation is deleted"))
  const deleted = yield* prune({ prefix, status: ended, updatedBefore: Number.MAX_SAFE_INTEGER }).pipe(
    Effect.provideService(RunStore, store),
    Effect.provideService(MediaStore, media),
    asProblem(id)
  )
  if (store.notes !== undefined) yield* asProblem(id)(store.notes.set(`${yield* keyOf(runs)}${id}`, undefined))
  return deleted
})
