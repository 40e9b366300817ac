/**
 * Models of the command line: `<provider>/<model>`, or a script of replies.
 */

import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import type { HttpClient } from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import type { ProviderUnavailable } from "../KernelError.ts"
import * as Model from "../Model.ts"
import * as ModelRegistry from "../ModelRegistry.ts"
import type { ProviderShape } from "../Provider.ts"
import { usage } from "./exit.ts"
import { excerpt } from "./terminalText.ts"

/** Names a model: of a provider, scripted in a file, or one that is not asked. */
export type ModelSource =
  | { readonly _tag: "Provider"; readonly name: string }
  | { readonly _tag: "Script"; readonly file: string }
  | { readonly _tag: "Unused"; readonly id: string }

/** Returns the model and the provider of a source. */
export const open = Effect.fnUntraced(function* (source: ModelSource) {
  if (source._tag === "Provider") return yield* resolve(source.name)
  const Script = yield* Effect.promise(() => import("./chat/scriptedChat.ts"))
  return source._tag === "Script"
    ? { model: "scripted", provider: yield* Script.provider(source.file) }
    : { model: source.id, provider: Script.make([]) }
})

/** Returns the model and the provider of `<provider>/<model>`. Unknown capabilities are guessed from the model's name. */
export const resolve = Effect.fnUntraced(function* (name: string) {
  const { model, provider } = yield* ModelRegistry.ModelRegistry.use((registry) => registry.resolve(name)).pipe(
    Effect.provide(Layer.provide(yield* registryFor(name), FetchHttpClient.layer)),
    Effect.mapError((error) =>
      usage(
        error._tag === "ProviderUnavailable" && error.variable !== undefined
          ? `${error.variable} is not set, ${excerpt(name, 80)} needs it; 'kernai run' shows a recorded conversation without any key`
          : excerpt(error.message, 400)
      )
    )
  )
  const capabilities = [...new Set([...model.capabilities, ...Model.guess(model.id)])]
  return { provider, model: { ...model, capabilities } }
})

type Adapter = Effect.Effect<ProviderShape, ProviderUnavailable, HttpClient>

const adapter = (load: () => Promise<{ readonly fromConfig: Adapter }>): Effect.Effect<Adapter> =>
  Effect.map(Effect.promise(load), (module) => module.fromConfig)

const common: ReadonlyMap<string, Effect.Effect<Adapter>> = new Map([
  ["anthropic", adapter(() => import("../provider/AnthropicProvider.ts"))],
  ["google", adapter(() => import("../provider/GeminiProvider.ts"))],
  ["ollama", adapter(() => import("../provider/OllamaProvider.ts"))],
  ["openai", adapter(() => import("../provider/OpenAiProvider.ts"))]
])

/** Loads only the adapter of a common provider, and all of them for any other. */
const registryFor = Effect.fnUntraced(function* (name: string) {
  const { provider } = Result.getOrElse(ModelRegistry.parse(name), () => ({ provider: "" }))
  const adapter = common.get(provider)
  if (adapter !== undefined) return ModelRegistry.layer({ [provider]: yield* adapter })
  return (yield* Effect.promise(() => import("../provider/HttpModelRegistry.ts"))).layer
})
