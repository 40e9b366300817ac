/**
 * The model behind a run: a request in, a stream of parts out.
 *
 * A provider speaks one vendor's wire format and nothing else: it knows no
 * blocks, runs no tools and keeps no state between calls. A stream that ends
 * without a `finish` part was cut and fails as `incomplete` (AC-4).
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import type { Generation } from "./Generation.ts"
import type { JsonObject } from "./internal/base/json.ts"
import type { MediaNotFound, MediaUnreadable, StoreError } from "./KernelError.ts"
import { ProviderError } from "./KernelError.ts"
import type { Media } from "./Media.ts"
import type { Message } from "./Message.ts"
import type { Model } from "./Model.ts"
import type { StreamPart } from "./StreamPart.ts"
import type * as Stream from "effect/Stream"

export { ProviderError }

/**
 * A callable as a vendor's native tool format needs it.
 *
 * @category models
 * @since 0.1.0
 */
export interface ToolDefinition {
  readonly name: string
  readonly description: string
  /** JSON Schema (2020-12) of the input: always an object. */
  readonly inputSchema: JsonObject
}

/**
 * Looks up media named by id in a message.
 *
 * @category models
 * @since 0.1.0
 */
export interface MediaLookup {
  readonly get: (id: string) => Effect.Effect<Option.Option<Media>, StoreError>
  readonly bytes: (id: string) => Effect.Effect<Uint8Array, MediaNotFound | MediaUnreadable | StoreError>
}

/**
 * One model call.
 *
 * `messages` begins with the system message, if there is one. Message objects
 * are shared between calls and never change, so an adapter may keep what it
 * encoded for each.
 *
 * @category models
 * @since 0.1.0
 */
export interface Request {
  readonly model: Model
  readonly messages: ReadonlyArray<Message>
  readonly tools: ReadonlyArray<ToolDefinition>
  readonly generation: Generation
  readonly media: MediaLookup
  /** Indexes into `messages` after which the prefix is stable enough to cache. */
  readonly cacheBreakpoints?: ReadonlyArray<number>
  /** Constrains the reply, for providers that take a grammar. */
  readonly grammar?: ReplyGrammar
}

/**
 * What a reply has to fit: blocks that call what may be called, JSON by itself, or a GBNF of one's own.
 *
 * It is a plain description, one value for as long as it stays the same. An
 * adapter has it written in the form its server takes (`Grammar.gbnfOf`,
 * `Grammar.jsonSchemaOf`, `Grammar.structuralTagOf`).
 *
 * @category models
 * @since 0.1.0
 */
export type ReplyGrammar =
  | {
      readonly _tag: "Blocks"
      readonly skills: ReadonlyArray<Pick<ToolDefinition, "name" | "inputSchema">>
      readonly protocols: ReadonlyArray<{ readonly name: string }>
      readonly workflows: boolean
      readonly output: JsonObject | undefined
    }
  | { readonly _tag: "Json"; readonly schema: JsonObject }
  | { readonly _tag: "Gbnf"; readonly text: string }

/**
 * The provider as a value: what a run may be given directly.
 *
 * @category models
 * @since 0.1.0
 */
export interface ProviderShape {
  /** `anthropic`, `openai`, …: the key of the model strings. */
  readonly name: string
  readonly stream: (request: Request) => Stream.Stream<StreamPart, ProviderError>
  /** The models on offer, when the vendor can tell. */
  readonly models?: Effect.Effect<ReadonlyArray<Model>, ProviderError>
}

/**
 * The provider a run uses when neither the run nor the agent names one (BP-31).
 *
 * @category services
 * @since 0.1.0
 */
export class Provider extends Context.Service<Provider, ProviderShape>()("kernai/Provider") {}
