/**
 * The model behind a run: a request in, a stream of parts out.
 *
 * A provider speaks the wire format of one vendor. It knows no blocks, runs no tools and keeps no state between calls.
 * A stream that ends without a `finish` part fails as `incomplete`.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Option from "effect/Option"
import type { Generation } from "./Generation.ts"
import type { JsonObject } from "./kit/json.ts"
import type { MediaNotFound, MediaUnreadable, StoreError } from "./KernelError.ts"
import { ProviderError } from "./KernelError.ts"
import type { Kind, Media } from "./Media.ts"
import type { Message } from "./Message.ts"
import type { Model } from "./Model.ts"
import type { StreamPart } from "./StreamPart.ts"
import type * as Stream from "effect/Stream"

export { ProviderError }

/**
 * A callable in the form that vendors expect of native tools.
 *
 * @category models
 * @since 0.1.0
 */
export interface ToolDefinition {
  readonly name: string
  readonly description: string
  /** JSON Schema (2020-12) of the input, always an object. */
  readonly inputSchema: JsonObject
  /**
   * The definition of a tool that vendors run themselves, by provider name. A provider without an entry does not send
   * the tool.
   *
   * @since 0.1.0
   */
  readonly hosted?: { readonly [provider: string]: JsonObject }
}

/**
 * Looks up stored media by the ids in messages.
 *
 * @category models
 * @since 0.1.0
 */
export interface MediaLookup {
  readonly get: (id: string) => Effect.Effect<Option.Option<Media>, StoreError>
  readonly bytes: (id: string) => Effect.Effect<Uint8Array, MediaNotFound | MediaUnreadable | StoreError>
}

/**
 * A medium of a message that is not part of a request, and why. A text stands in its place.
 *
 * @category models
 * @since 0.1.0
 */
export interface LeftOutMedium {
  readonly type: Kind
  readonly mediaType: string
  readonly reason: string
}

/**
 * One model call.
 *
 * `messages` begins with the system message, if any. Message objects are shared between calls and never change, so a
 * provider may cache what it encodes for each.
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
  /**
   * Called with the media that the request does not hold although its messages do, and why. The encoders of
   * `kernai/provider` call it, `MessageEncoder` included. The last call counts.
   */
  readonly noteLeftOut?: (media: ReadonlyArray<LeftOutMedium>) => void
  /** Indexes into `messages` after which the prefix is stable enough to be cached. */
  readonly cacheBreakpoints?: ReadonlyArray<number>
  /**
   * Constrains the reply, for providers that support it. With native calls it is the schema of a typed answer, for a
   * model with `structuredOutput`.
   */
  readonly grammar?: ReplyGrammar
}

/**
 * The form of a reply: blocks that call what is allowed, JSON of a schema, or a custom GBNF.
 *
 * It is plain data, and stays the same object until it changes. Providers translate it to the form of their server with
 * `Grammar.gbnfOf`, `Grammar.jsonSchemaOf` or `Grammar.structuralTagOf` of `kernai/provider`.
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
      /** The agents that tasks of a workflow may name. Absent: none. */
      readonly agents?: ReadonlyArray<string>
      readonly output: JsonObject | undefined
    }
  | { readonly _tag: "Json"; readonly schema: JsonObject }
  | { readonly _tag: "Gbnf"; readonly text: string }

/**
 * A provider as a value, as it can be passed to a run. `E` are failures besides `ProviderError`, which only the provider
 * that an agent brings may have.
 *
 * @category models
 * @since 0.1.0
 */
export interface ProviderShape<out E = never> {
  /** The key in model strings, such as `anthropic` or `openai`. */
  readonly name: string
  readonly stream: (request: Request) => Stream.Stream<StreamPart, ProviderError | E>
  /**
   * Returns the options of a request that its model accepts. The others are not sent, and `dropped` of the event
   * `llm_response` names them.
   * Absent: all are accepted.
   *
   * @since 0.1.0
   */
  readonly takes?: (request: Pick<Request, "generation" | "model">) => Generation
  /**
   * Returns whether the reply to a request is held to its `grammar`. If it is not, `dropped` of the event
   * `llm_response` names `output` for the schema of a typed answer. Absent: nothing is reported.
   *
   * @since 0.1.0
   */
  readonly constrains?: (request: Request) => boolean
  /** The models on offer, if the vendor lists them. */
  readonly models?: Effect.Effect<ReadonlyArray<Model>, ProviderError>
}

/**
 * True if the adapters of this package refuse to call a real model. Default: false.
 *
 * @category references
 * @since 0.1.0
 */
export const ForbidReal: Context.Reference<boolean> = Context.Reference<boolean>("kernai/Provider/ForbidReal", {
  defaultValue: () => false
})

/**
 * Makes every call of an adapter of `kernai/provider` fail with `ProviderError` of reason `forbidden` before anything
 * is sent. For tests, beside a `MockProvider`: a test that would call a real model fails instead of costing money.
 *
 * It applies to recorded HTTP exchanges too. Provide `ForbidReal` as `false` around a call that plays one back.
 *
 * @category layers
 * @since 0.1.0
 */
export const forbidReal: Layer.Layer<never> = Layer.succeed(ForbidReal, true)

/**
 * The default provider, used when neither the run nor its agent names one.
 *
 * @category services
 * @since 0.1.0
 */
export class Provider extends Context.Service<Provider, ProviderShape>()("kernai/Provider") {}
