/**
 * Asks a real model: the same run as a replay, over the network.
 */

import type { NodeServices } from "@effect/platform-node/NodeServices"
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import type { HttpClient } from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import type * as Path from "effect/Path"
import * as Result from "effect/Result"
import * as Agent from "../Agent.ts"
import * as MediaFile from "../internal/words/mediaFile.ts"
import * as Kernel from "../Kernel.ts"
import type { ProviderUnavailable, SkillFilesInvalid } from "../KernelError.ts"
import * as Media from "../Media.ts"
import * as Model from "../Model.ts"
import * as ModelRegistry from "../ModelRegistry.ts"
import { Provider, type ProviderShape } from "../Provider.ts"
import * as SkillRegistry from "../SkillRegistry.ts"
import * as Skills from "./demo/skills.ts"
import { type CommandFailed, usage } from "./exit.ts"
import { follow, type Options as FollowOptions } from "./followRun.ts"
import { Screen } from "./screen.ts"
import { excerpt } from "./terminalText.ts"

/** What is asked, and who. */
export interface Options extends Pick<FollowOptions, "form" | "colors"> {
  /** `<provider>/<model>`. */
  readonly model: string
  readonly question: string
  readonly instructions: string
  /** Files of pictures, inside `root` (S-4). */
  readonly images: ReadonlyArray<string>
  readonly root: string
  readonly maxSteps: number
  readonly dialect: Agent.DialectName
  /** Those of the recorded conversations, those of them of use with any question, none, or a folder of skill files. */
  readonly skills: "all" | "general" | "none" | { readonly directory: string }
  /** A config of MCP servers to use as well. */
  readonly mcp?: string | undefined
}

/** Runs an agent with a model of the network. */
export const live = Effect.fnUntraced(function* (options: Options) {
  const { model, provider } = yield* resolve(options.model)
  const images = yield* Effect.forEach(options.images, (file) => readImage(options.root, file))
  const agent = Agent.make({
    instructions: options.instructions,
    model,
    maxSteps: options.maxSteps,
    dialect: options.dialect,
    ...(options.skills === "none" && options.mcp === undefined ? {} : { skills: "all" as const })
  })
  if (images.length > 0) yield* tellBlind(options, options.model, model)
  return yield* follow(Kernel.stream(agent, [options.question, ...images]), {
    ...options,
    title: `live with ${options.model}`,
    question: options.question
  }).pipe(
    Effect.provide(Layer.provide(yield* kernelOf(options), Layer.succeed(Provider, provider))),
    Effect.catchTag("SkillFilesInvalid", (error) => Effect.fail(usage(excerpt(error.message, 400))))
  )
})

const kernelOf = Effect.fnUntraced(function* ({
  mcp,
  skills
}: Options): Effect.fn.Return<
  Layer.Layer<Kernel.Kernel, SkillFilesInvalid | CommandFailed, Provider | NodeServices>,
  CommandFailed,
  NodeServices
> {
  if (mcp === undefined) return Layer.provide(Kernel.layerMemory, skillsOf(skills))
  const { withServers } = yield* Effect.promise(() => import("./mcp/play.ts"))
  return Layer.provide(Kernel.layer, yield* withServers(mcp, skillsOf(skills)))
})

/**
 * The provider and the model of a model string. What a model can do is guessed where nothing is known (BP-182).
 */
export const resolve = Effect.fnUntraced(function* (name: string) {
  const { model, provider } = yield* ModelRegistry.ModelRegistry.use((registry) => registry.resolve(name)).pipe(
    Effect.provide(Layer.provide(yield* registryOf(name), FetchHttpClient.layer)),
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

// One adapter is loaded instead of all of them, where the model string is one of the usual.
const usual: ReadonlyMap<string, Effect.Effect<Adapter>> = new Map([
  ["anthropic", adapter(() => import("../provider/AnthropicProvider.ts"))],
  ["google", adapter(() => import("../provider/GeminiProvider.ts"))],
  ["ollama", adapter(() => import("../provider/OllamaProvider.ts"))],
  ["openai", adapter(() => import("../provider/OpenAiProvider.ts"))]
])

const registryOf = Effect.fnUntraced(function* (name: string) {
  const parts = ModelRegistry.parse(name)
  const adapter = Result.isSuccess(parts) ? usual.get(parts.success.provider) : undefined
  if (Result.isSuccess(parts) && adapter !== undefined) {
    return ModelRegistry.layer({ [parts.success.provider]: yield* adapter })
  }
  return (yield* Effect.promise(() => import("../provider/HttpModelRegistry.ts"))).layer
})

/** A picture to send, from a file inside `root`. */
export const readImage = Effect.fnUntraced(function* (root: string, file: string) {
  const readFile = yield* MediaFile.make(root)
  const bytes = yield* Effect.mapError(readFile(file), (reason) =>
    usage(`${excerpt(file, 80)} cannot be sent: ${reason}`)
  )
  const mimeType = Media.mimeTypeOf(file)
  if (Media.kindOf(mimeType) !== "image") return yield* usage(`${excerpt(file, 80)} is no image by its name`)
  return Media.fromBytes(bytes, mimeType)
})

/** Tells a person who sends pictures to a model that is not known to see them. */
export const tellBlind = (
  { form }: Pick<Options, "form">,
  name: string,
  model: Model.Model | string
): Effect.Effect<void, never, Screen> =>
  form !== "text" || typeof model === "string" || Model.supports(model, "vision")
    ? Effect.void
    : Screen.use((screen) =>
        Effect.sync(() =>
          screen.progress(`${excerpt(name, 80)} is not known to see: it is told that there is a picture, and no more\n`)
        )
      )

/** The registry of the skills that are offered. */
export const skillsOf = (
  skills: Options["skills"]
): Layer.Layer<SkillRegistry.SkillRegistry, SkillFilesInvalid, FileSystem.FileSystem | Path.Path> => {
  const registry = Layer.orDie(
    SkillRegistry.layer(...(skills === "all" ? Skills.all : skills === "general" ? Skills.general : []))
  )
  if (typeof skills === "string") return registry
  const files = Effect.map(
    Effect.promise(() => import("../file/SkillFileLoader.ts")),
    (loader) => loader.layer({ directory: skills.directory })
  )
  return Layer.provideMerge(Layer.unwrap(files), registry)
}
