/**
 * Remembers texts across runs, and finds them again by content.
 *
 * A search returns the best match first, and the oldest first among equals. It compares words, and with an `Embedder`
 * also meaning: the order is then that of both ranks (reciprocal rank fusion). Three skills let a model search, store
 * and forget; a section adds matching memories to the prompt. The prompt marks memories as data, not as instructions.
 *
 * @since 0.1.0
 */

import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import * as Schema from "effect/Schema"
import type { Scope } from "./Caller.ts"
import { MemoryIndex } from "./internal/chat/memoryIndex.ts"
import * as Section from "./internal/chat/memorySection.ts"
import type { Json, JsonObject } from "./kit/json.ts"
import { layerFor } from "./kit/layerFor.ts"
import * as Memories from "./store-kit/MemoryRules.ts"
import type { Query } from "./store-kit/MemoryRules.ts"
import { logIgnored } from "./kit/foreignCode.ts"
import { randomId } from "./kit/randomId.ts"
import { freeze } from "./kit/snapshot.ts"
import { LimitExceeded, StoreError } from "./KernelError.ts"
import { Limits } from "./Limits.ts"
import type { PromptContext } from "./PromptPipeline.ts"
import * as Skill from "./Skill.ts"

export type { Query }

export { StoreError }

// ---------------------------------------------------------------- models

/**
 * A memory.
 *
 * @category models
 * @since 0.1.0
 */
export interface MemoryEntry {
  readonly id: string
  readonly content: string
  readonly metadata: JsonObject
  /** Milliseconds since the epoch. */
  readonly createdAt: number
  /** The quality of the match, from 0 to 1. */
  readonly score?: number
}

/**
 * A text to remember.
 *
 * @category models
 * @since 0.1.0
 */
export interface NewMemory {
  readonly content: string
  /** Copied: later changes to the object have no effect. */
  readonly metadata?: JsonObject | undefined
  /** Storing again under the same key stores nothing and returns the existing entry. */
  readonly key?: string | undefined
}

/**
 * An entry to forget.
 *
 * @category models
 * @since 0.1.0
 */
export interface Forgetting extends Pick<Query, "filter"> {
  readonly id: string
}

/**
 * Entries to delete.
 *
 * @category models
 * @since 0.1.0
 */
export interface Pruning {
  readonly filter: JsonObject
  /** The ids of entries that stay. */
  readonly keep?: ReadonlySet<string> | undefined
}

/**
 * Returns the fields that the metadata of memories must have, from the caller and the context of a run.
 *
 * @category models
 * @since 0.1.0
 */
export type Filter = (scope: Pick<Scope, "caller" | "context">) => JsonObject

/**
 * The operations of a memory.
 *
 * @category models
 * @since 0.1.0
 */
export interface MemoryShape {
  /**
   * Stores a text, or returns the entry with the same key. Fails with `LimitExceeded` for content or metadata over
   * `Limits.resultBytes`.
   */
  readonly store: (memory: NewMemory) => Effect.Effect<MemoryEntry, StoreError | LimitExceeded>
  /** Returns the best match first, and the oldest first among equals. */
  readonly search: (query: Query) => Effect.Effect<ReadonlyArray<MemoryEntry>, StoreError>
  /** Deletes an entry, if its metadata pass the filter. Returns whether there was such an entry. */
  readonly forget: (which: Forgetting) => Effect.Effect<boolean, StoreError>
  /** Deletes all entries whose metadata pass the filter, except those to keep. Returns how many. */
  readonly prune: (which: Pruning) => Effect.Effect<number, StoreError>
}

/**
 * The memory of an application.
 *
 * @category services
 * @since 0.1.0
 */
export class Memory extends Context.Service<Memory, MemoryShape>()("kernai/Memory") {}

/**
 * Turns a text into a vector of its meaning. All vectors have the same length; similar texts have similar vectors.
 *
 * @category models
 * @since 0.1.0
 */
export type Embed = (text: string) => Effect.Effect<ReadonlyArray<number>, unknown>

/**
 * The embedder of memories. None by default: searches then compare words only.
 *
 * Failures are logged: the search then compares words only, and a text stored without a vector has no similarity.
 *
 * @category references
 * @since 0.1.0
 */
export const Embedder: Context.Reference<Embed | undefined> = Context.Reference<Embed | undefined>("kernai/Embedder", {
  defaultValue: () => undefined
})

// ---------------------------------------------------------------- constructors

/**
 * Creates a memory in this process. The score is the share of the query's words that an entry contains, where rare words
 * count more; with an `Embedder`, it is the mean of that share and the similarity of meaning.
 *
 * @category constructors
 * @since 0.1.0
 */
export const makeMemory: Effect.Effect<MemoryShape> = Effect.gen(function* () {
  const embed = yield* embedding
  const index = new MemoryIndex<MemoryEntry>()

  const store = Effect.fnUntraced(function* (memory: NewMemory) {
    const { content, key, metadata = {} } = memory
    yield* admit(memory)
    const before = index.known(key)
    if (before !== undefined) return before
    const vector = yield* embed(content)
    const entry = yield* entryOf(content, metadata)
    // Another fiber may have stored under this key while the text was embedded.
    const meanwhile = index.known(key)
    if (meanwhile !== undefined) return meanwhile
    index.add(entry, key, vector)
    return entry
  })

  const search = Effect.fnUntraced(function* (query: Query) {
    const asked = Memories.asked(query)
    if (asked.words.length === 0 || asked.limit === 0) return []
    return index.search(asked, query.filter, yield* embed(query.query))
  })

  const forget = ({ filter, id }: Forgetting) => Effect.sync(() => index.remove(id, filter))

  const prune = ({ filter, keep }: Pruning) => Effect.sync(() => index.prune(filter, keep))

  return { store, search, forget, prune }
})

/**
 * Creates the entry of a content, with its id from `Random` and its time from `Clock`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const entryOf = Effect.fnUntraced(function* (
  content: string,
  metadata: JsonObject
): Effect.fn.Return<MemoryEntry> {
  const id = `mem_${randomId(yield* Random.Random, 2)}`
  // Copied, because the caller may change the metadata later.
  return { id, content, metadata: freeze(structuredClone(metadata)), createdAt: yield* Clock.currentTimeMillis }
})

/**
 * Fails for content or metadata that is too long, and for metadata that is not JSON.
 *
 * @category guards
 * @since 0.1.0
 */
export const admit = ({ content, metadata = {} }: NewMemory): Effect.Effect<void, StoreError | LimitExceeded> =>
  Effect.flatMap(Limits, ({ resultBytes }): Effect.Effect<void, StoreError | LimitExceeded> => {
    if (!Memories.isStorable(metadata)) {
      return Effect.fail(
        new StoreError({ operation: "remember", reason: "invalid", detail: "the metadata is not JSON" })
      )
    }
    return Memories.isLonger(content, resultBytes) || Memories.isLonger(Memories.canonical(metadata), resultBytes)
      ? Effect.fail(new LimitExceeded({ limit: "memory", value: resultBytes }))
      : Effect.void
  })

/**
 * Returns a function that turns a text into a vector of length 1, with the embedder of the running fiber or else of the
 * layer. The function returns undefined without an embedder and after a failure.
 *
 * @category getters
 * @since 0.1.0
 */
export const embedding: Effect.Effect<(text: string) => Effect.Effect<Float32Array | undefined>> = Effect.map(
  Embedder,
  (built) => (text) =>
    Effect.flatMap(Embedder, (current) => {
      const embed = current ?? built
      if (embed === undefined) return Effect.undefined
      return embed(text).pipe(
        Effect.map(Memories.unit),
        Effect.catchCause((cause) => Effect.as(logIgnored("a text was not embedded")(cause), undefined))
      )
    })
)

// ---------------------------------------------------------------- layers

/**
 * Keeps memories in this process, in one memory for each `Embedder`.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerMemory: Layer.Layer<Memory> = layerFor(Embedder, () => Layer.effect(Memory, makeMemory))

// ---------------------------------------------------------------- skills

const MetadataInput = Schema.optionalKey(
  Schema.Record(Schema.String, Schema.Json).annotate({ description: "Facts about it, to search by" })
)

/** Creates the three skills. They reach only memories that pass the filter. */
const skillsWithin = (filter: Filter) => {
  const within = (scope: Skill.CallScope): JsonObject => filter(Section.scopeOfCall(scope))
  const search = Skill.make("memory_search", {
    description: "Searches what was remembered, best first.",
    input: Schema.Struct({
      query: Schema.String.annotate({ description: "Words to look for" }),
      limit: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 50 }))),
      filter: MetadataInput
    }),
    effects: "read",
    annotations: { openWorld: false },
    execute: (query, scope) =>
      Memory.use((memory) =>
        Effect.map(memory.search({ ...query, filter: { ...query.filter, ...within(scope) } }), (entries) => ({
          entries: entries.map(shown)
        }))
      )
  })
  const store = Skill.make("memory_store", {
    description: "Remembers a text for later runs.",
    input: Schema.Struct({ content: Schema.String, metadata: MetadataInput }),
    // The key is that of the call, so a repeated call stores once.
    effects: "idempotent",
    annotations: { openWorld: false },
    execute: ({ content, metadata }, scope) =>
      Memory.use(({ store }) =>
        Effect.map(
          store({ content, metadata: { ...metadata, ...within(scope) }, key: scope.idempotencyKey }),
          ({ id }) => ({ id })
        )
      )
  })
  const forget = Skill.make("memory_forget", {
    description: "Forgets something that was remembered, by its id.",
    input: Schema.Struct({ id: Schema.String }),
    effects: "idempotent",
    annotations: { openWorld: false },
    execute: ({ id }, scope) =>
      Memory.use((memory) =>
        Effect.map(memory.forget({ id, filter: within(scope) }), (isForgotten) =>
          isForgotten ? `Forgot ${id}.` : `There is nothing with the id ${id}.`
        )
      )
  })
  return [search, store, forget] as const
}

/**
 * The skills with which a model uses the whole memory: `memory_search`, `memory_store`, `memory_forget`.
 *
 * @example
 * SkillRegistry.layer(...Memory.skills)
 *
 * @category skills
 * @since 0.1.0
 */
export const skills: ReturnType<typeof skillsWithin> = skillsWithin(() => ({}))

/**
 * Creates the skills and the section of a part of the memory, such as that of the caller's tenant. The skills find and
 * forget only entries whose metadata have the fields of the filter, and store entries with these fields, whatever a
 * model asks for. If the filter throws, the skills fail and the section is left out.
 *
 * @example
 * const memory = Memory.within(({ caller }) => ({ tenant: caller?.tenant ?? null }))
 * const parts = [SkillRegistry.layer(...memory.skills), PromptPipeline.layer({ sections: [memory.section()] })]
 *
 * @category skills
 * @since 0.1.0
 */
export const within = (
  filter: Filter
): {
  readonly skills: typeof skills
  readonly section: (options?: Omit<Query, "query" | "filter">) => ReturnType<typeof section>
} => ({
  skills: skillsWithin(filter),
  section: (options) => section({ ...options, filter })
})

const shown = ({ content, id, metadata, score }: MemoryEntry): { readonly [field: string]: Json } => ({
  id,
  content,
  ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
  ...(score === undefined ? {} : { score: Math.round(score * 100) / 100 })
})

// ---------------------------------------------------------------- the prompt

/**
 * Creates a prompt section with the memories that match the user's message.
 *
 * The memory is searched once per run, and never in a replay. The section then stays the same, so that the provider can
 * cache the prefix of the prompt. A memory or a filter that fails is logged and left out. A prompt may have several
 * sections, each with a different `filter`; sections with the same filter become one.
 *
 * @example
 * Memory.section({ filter: ({ caller }) => ({ tenant: caller?.tenant ?? null }) })
 *
 * @category constructors
 * @since 0.1.0
 */
export const section =
  (
    options: Omit<Query, "query" | "filter"> & { readonly filter?: JsonObject | Filter | undefined } = {}
  ): ((context: PromptContext) => Effect.Effect<string, never, Memory>) =>
  (context) =>
    Section.ofRun(context, "the memory was not searched", (scope) => {
      const filter = typeof options.filter === "function" ? options.filter(scope) : options.filter
      const opening = Section.openingOf(filter)
      const search = (query: string) =>
        Memory.use((memory) =>
          Effect.map(memory.search({ ...options, filter, query }), (entries) => Section.write(opening, entries))
        )
      return { opening, search }
    })

/**
 * Renders entries for a prompt, escaped so that none of them can close the section.
 *
 * @category rendering
 * @since 0.1.0
 */
export const fragment = (entries: ReadonlyArray<MemoryEntry>): string =>
  Section.write(Section.openingOf(undefined), entries)
