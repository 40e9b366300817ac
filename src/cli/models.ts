/**
 * Models of the command line: `<provider>/<model>`, the model of an agent file, or a script of replies.
 */

import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import type { Agent } from "../Agent.ts"
import { ProviderError } from "../KernelError.ts"
import * as Model from "../Model.ts"
import { ModelRegistry } from "../ModelRegistry.ts"
import type { ProviderShape } from "../Provider.ts"
import { type CommandFailed, usage } from "./exit.ts"
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
  if (file.provider !== undefined) return { model: file.model, provider: none }
  const ofAgent = (error: CommandFailed) => usage(`agent '${excerpt(file.name, 40)}': ${error.reason}`)
  if (typeof file.model === "string") return yield* Effect.mapError(resolve(file.model), ofAgent)
  const { id, provider } = file.model
  if (provider === undefined) return yield* ofAgent(usage(`the model ${excerpt(id, 80)} names no provider`))
  // The file describes its model better than the registry.
  return { ...(yield* Effect.mapError(resolve(`${provider}/${id}`), ofAgent)), model: file.model }
})

/** The provider of agents below a program whose models name none. */
const none: ProviderShape = {
  name: "none",
  stream: ({ model }) =>
    Stream.fail(
      new ProviderError({
        provider: "none",
        reason: "not_configured",
        detail: `the model '${excerpt(model.id, 80)}' names no provider: write <provider>/<model>, or give --model or --script`
      })
    )
}

/** Returns a model that is never called. */
export const unused = Effect.fnUntraced(function* (id: string) {
  const Script = yield* Effect.promise(() => import("./chat/scriptedChat.ts"))
  return { model: id, provider: Script.make([]) }
})

/** The models that agents name as `<provider>/<model>`. */
export const registry = Layer.unwrap(
  Effect.map(
    Effect.promise(() => import("../provider/HttpModelRegistry.ts")),
    ({ layer }) => Layer.provide(layer, FetchHttpClient.layer)
  )
)

/** Returns the model and the provider of `<provider>/<model>`. Unknown capabilities are guessed from the model's name. */
export const resolve = Effect.fnUntraced(function* (name: string) {
  const { model, provider } = yield* ModelRegistry.use((registry) => registry.resolve(name)).pipe(
    Effect.provide(registry),
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
