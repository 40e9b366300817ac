/**
 * Models of the command line: `<provider>/<model>`, or a script of replies.
 */

import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import * as Model from "../Model.ts"
import { ModelRegistry } from "../ModelRegistry.ts"
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
  const { layer } = yield* Effect.promise(() => import("../provider/HttpModelRegistry.ts"))
  const { model, provider } = yield* ModelRegistry.use((registry) => registry.resolve(name)).pipe(
    Effect.provide(Layer.provide(layer, FetchHttpClient.layer)),
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
