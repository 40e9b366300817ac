/**
 * Answers from documents: they are split into passages along their structure, and a search cites document and lines.
 *
 * Passages are kept in a `Memory` of their own, which compares words, and with an `Embedder` also meaning. A skill lets
 * a model search; a section adds matching passages to the prompt, marked as data, not as instructions.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { citing } from "./internal/chat/citations.ts"
import * as Section from "./internal/chat/memorySection.ts"
import { split, type Split } from "./internal/chat/passages.ts"
import type { JsonObject } from "./kit/json.ts"
import { sha256 } from "./kit/sha256.ts"
import { type LimitExceeded, StoreError } from "./KernelError.ts"
import * as Memory from "./Memory.ts"
import type { Middleware } from "./Middleware.ts"
import type { PromptContext } from "./PromptPipeline.ts"
import * as Skill from "./Skill.ts"
import { canonical } from "./store-kit/MemoryRules.ts"

// ---------------------------------------------------------------- models

/**
 * A document. Its name says how it is split: as Markdown (`.md`, `.mdx`, `.markdown`), as text (`.txt`, `.rst` and
 * others, or no extension), or else as code.
 *
 * @category models
 * @since 0.1.0
 */
export interface Document {
  readonly name: string
  readonly content: string
  /** Fields to filter by, such as the tenant. Documents with the same name and other fields are other documents. */
  readonly metadata?: JsonObject | undefined
}

/**
 * A part of a document that a search found.
 *
 * @category models
 * @since 0.1.0
 */
export interface Passage {
  readonly document: string
  /** The first line, counted from 1. */
  readonly from: number
  /** The last line. */
  readonly to: number
  /** The headings above it, joined by ` > `; in code, the name of its first declaration. May be empty. */
  readonly heading: string
  readonly content: string
  /** Document and lines, such as `guide.md:12-30`. */
  readonly citation: string
  readonly metadata: JsonObject
  /** The quality of the match, from 0 to 1. */
  readonly score: number
}

/**
 * What `index` did with a document.
 *
 * @category models
 * @since 0.1.0
 */
export interface Indexed {
  /** The number of passages of the document. */
  readonly passages: number
  /** The number of passages that the document does not have any more. */
  readonly removed: number
}

/**
 * The operations of a knowledge base.
 *
 * @category models
 * @since 0.1.0
 */
export interface KnowledgeShape {
  /**
   * Makes a document searchable, in place of its earlier content. Passages that are unchanged, in the same lines, are
   * neither stored nor embedded again. An interrupted call may be repeated.
   */
  readonly index: (document: Document) => Effect.Effect<Indexed, StoreError | LimitExceeded>
  /** Removes a document. Returns the number of its passages. */
  readonly remove: (document: Omit<Document, "content">) => Effect.Effect<number, StoreError>
  /** Returns the best passage first. */
  readonly search: (query: Memory.Query) => Effect.Effect<ReadonlyArray<Passage>, StoreError>
}

/**
 * The documents of an application.
 *
 * @category services
 * @since 0.1.0
 */
export class Knowledge extends Context.Service<Knowledge, KnowledgeShape>()("kernai/Knowledge") {}

/**
 * Options of a knowledge base.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** The largest length of a passage in UTF-16 units, at least 100. Default: 1,200. */
  readonly passageLength?: number | undefined
}

// ---------------------------------------------------------------- constructors

/**
 * Creates a knowledge base in the memory in context, which should have no other entries.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = Effect.fnUntraced(function* (
  options: Options = {}
): Effect.fn.Return<KnowledgeShape, never, Memory.Memory> {
  const memory = yield* Memory.Memory
  const size = Math.max(100, Math.floor(options.passageLength ?? 1_200))

  const index = Effect.fnUntraced(function* ({ content, metadata = {}, name }: Document) {
    const keep = new Set<string>()
    for (const part of split(name, content, size)) {
      const entry = newEntry(name, metadata, part)
      const key = yield* sha256(canonical(entry))
      keep.add((yield* memory.store({ ...entry, key })).id)
    }
    const removed = yield* memory.prune({ filter: identity(name, metadata), keep })
    return { passages: keep.size, removed }
  })

  return {
    index,
    remove: ({ metadata = {}, name }) => memory.prune({ filter: identity(name, metadata) }),
    search: (query) =>
      Effect.flatMap(memory.search({ ...query, filter: fieldsOf(query.filter ?? {}) }), (entries) =>
        Effect.forEach(entries, passageOf)
      )
  }
})

/**
 * Keeps passages in the memory in context, such as a `SqlMemory` with a space of its own.
 *
 * @example
 * Layer.provide(Knowledge.layer(), SqlMemory.layerSqlite({ filename: "kernai.db", space: "documents" }))
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options?: Options): Layer.Layer<Knowledge, never, Memory.Memory> =>
  Layer.effect(Knowledge, make(options))

/**
 * Keeps passages in this process.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerMemory: Layer.Layer<Knowledge> = Layer.effect(
  Knowledge,
  Effect.flatMap(Memory.makeMemory, (memory) => Effect.provideService(make(), Memory.Memory, memory))
)

// ---------------------------------------------------------------- entries

/** The fields of a document have a prefix, so that none of them is mistaken for one of the passage. */
const fieldsOf = (metadata: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(metadata).map(([name, value]) => [`${prefix}${name}`, value]))

const prefix = "document."

/** The fields that all passages of a document have, and those of no other document. */
const identity = (document: string, metadata: JsonObject): JsonObject => ({
  ...fieldsOf(metadata),
  document: canonical([document, metadata])
})

/** Creates the entry of a passage. Its headings are searched with its content. */
const newEntry = (name: string, metadata: JsonObject, { content, from, heading, to }: Split) => ({
  content: `${heading}\n\n${content}`,
  metadata: { ...identity(name, metadata), name, from, to, heading }
})

const Place = Schema.Struct({
  name: Schema.String,
  from: Schema.Int,
  to: Schema.Int,
  heading: Schema.String
})

const decodePlace = Schema.decodeUnknownResult(Place)

const passageOf = ({ content, id, metadata, score = 0 }: Memory.MemoryEntry): Effect.Effect<Passage, StoreError> => {
  const place = decodePlace(metadata)
  if (Result.isFailure(place)) {
    return Effect.fail(
      new StoreError({ operation: "search", reason: "corrupt", detail: `memory ${id} is not a passage of a document` })
    )
  }
  const { from, heading, name, to } = place.success
  const fields = Object.entries(metadata).filter(([field]) => field.startsWith(prefix))
  return Effect.succeed({
    document: name,
    from,
    to,
    heading,
    content: content.slice(heading.length + 2),
    citation: `${name}:${from === to ? from : `${from}-${to}`}`,
    metadata: Object.fromEntries(fields.map(([field, value]) => [field.slice(prefix.length), value])),
    score
  })
}

// ---------------------------------------------------------------- for agents

/**
 * Options of the skill.
 *
 * @category models
 * @since 0.1.0
 */
export interface SkillOptions<Name extends string> {
  /** The name of the skill. Default: `search`. */
  readonly name?: Name | undefined
  /** What the documents are about, for the model. */
  readonly description?: string | undefined
  /** Fields that documents must have, such as the tenant of the caller. */
  readonly filter?: Memory.Filter | undefined
}

const defaultName = "search"

/**
 * Creates the skill with which a model searches documents. A model cannot widen the filter; if the filter throws, the
 * skill fails.
 *
 * @example
 * SkillRegistry.layer(Knowledge.skill({ filter: ({ caller }) => ({ tenant: caller?.tenant ?? null }) }))
 *
 * @category skills
 * @since 0.1.0
 */
export const skill = <const Name extends string = typeof defaultName>({
  description = "Searches the documents, best first. Cite the place of each passage that you use.",
  filter = () => ({}),
  name
}: SkillOptions<Name> = {}) =>
  Skill.make(name ?? defaultName, {
    description,
    input: Schema.Struct({
      query: Schema.String.annotate({ description: "A question, or words to look for" }),
      limit: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 20 })))
    }),
    effects: "read",
    annotations: { openWorld: false },
    execute: (query, scope) =>
      Knowledge.use((knowledge) =>
        Effect.map(knowledge.search({ ...query, filter: filter(Section.scopeOfCall(scope)) }), (passages) => ({
          passages: passages.map(({ citation, content, heading }) => ({ place: citation, heading, content }))
        }))
      )
  })

/**
 * Creates a prompt section with the passages that match the user's message. Documents are searched once per run, and
 * never in a replay. A search or a filter that fails is logged, and the section is left out.
 *
 * @example
 * PromptPipeline.layer({ sections: [Knowledge.section({ limit: 3 })] })
 *
 * @category constructors
 * @since 0.1.0
 */
export const section =
  (
    options: Omit<Memory.Query, "query" | "filter"> & { readonly filter?: Memory.Filter | undefined } = {}
  ): ((context: PromptContext) => Effect.Effect<string, never, Knowledge>) =>
  (context) =>
    Section.ofRun(context, "the documents were not searched", (scope) => {
      const filter = options.filter?.(scope)
      const opening = Section.passagesOpeningOf(filter)
      const search = (query: string) =>
        Knowledge.use((knowledge) =>
          Effect.map(knowledge.search({ ...options, filter, query }), (passages) =>
            Section.writePassages(opening, passages)
          )
        )
      return { opening, search }
    })

/**
 * Adds a source to a reply for each passage that it names by its place, such as `guide.md:12-30`, if the model was given
 * the passage. Sources are part of the stored message (`Message.sources`): pages and the command line list them, with
 * the heading, and front ends of other protocols get them as theirs.
 *
 * @example
 * Middleware.layer(Knowledge.citations)
 *
 * @category constructors
 * @since 0.1.0
 */
export const citations: Middleware = citing
