/**
 * Models of the command line: `<provider>/<model>`, the model of an agent file, or a script of replies.
 */

import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import type { Agent } from "../Agent.ts"
import * as Model from "../Model.ts"
import { ModelRegistry } from "../ModelRegistry.ts"
import { usage } from "./exit.ts"
import type { Settings } from "./settings.ts"
import { excerpt } from "./terminalText.ts"

/** Returns the model in the settings, or that of the agent file, with its provider. */
export const open = Effect.fnUntraced(function* (
  { model, script }: Pick<Settings, "model" | "script">,
  file: Agent<unknown> | undefined
) {
  if (script !== undefined) {
    const Script = yield* Effect.promise(() => import("./chat/scriptedChat.ts"))
    return { model: "scripted", provider: yield* Script.provider(script) }
  }
  if (model !== undefined) return yield* resolve(model)
  if (file === undefined) {
    return yield* usage(
      "no model is named: give --model <provider>/<model>, --agent <file>, or --script <file> for a scripted model"
    )
  }
  // A program, or an agent that brings its provider.
  if (file.provider !== undefined) return { ...(yield* unused("none")), model: file.model }
  if (typeof file.model === "string") return yield* resolve(file.model)
  const { id, provider } = file.model
  if (provider === undefined) return yield* usage(`the model ${excerpt(id, 80)} of the agent names no provider`)
  // The file describes its model better than the registry.
  return { ...(yield* resolve(`${provider}/${id}`)), model: file.model }
})

/** Returns a model that is never called. */
export const unused = Effect.fnUntraced(function* (id: string) {
  const Script = yield* Effect.promise(() => import("./chat/scriptedChat.ts"))
  return { model: id, provider: Script.make([]) }
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
