/**
 * Plays a recorded conversation: the model's words come from a file, all else is real.
 *
 * The vendor's adapter encodes each request and decodes each recorded answer,
 * the kernel runs, the skills are executed. A conversation that is not the
 * recorded one, or another answer, fails the run and says where it parted.
 */

import * as Effect from "effect/Effect"
import type { HttpClient } from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import * as Agent from "../Agent.ts"
import * as Kernel from "../Kernel.ts"
import * as MediaStore from "../MediaStore.ts"
import * as Model from "../Model.ts"
import * as ProtocolRegistry from "../ProtocolRegistry.ts"
import { Provider, type ProviderShape } from "../Provider.ts"
import type { AnySkill } from "../Skill.ts"
import * as SkillRegistry from "../SkillRegistry.ts"
import * as ReplayProvider from "../testing/ReplayProvider.ts"
import * as Recordings from "./demo/recordings.ts"
import * as Skills from "./demo/skills.ts"
import { usage } from "./exit.ts"
import { follow, type Options as FollowOptions } from "./followRun.ts"
import type { Store } from "./storeFlag.ts"
import { excerpt } from "./terminalText.ts"

/** How a recording is played. */
export interface Options extends Pick<FollowOptions, "form" | "colors"> {
  readonly maxSteps?: number
  /** Default: the skills of the bundled conversations. */
  readonly skills?: ReadonlyArray<AnySkill>
  /** Where the run is kept. Default: nowhere. */
  readonly store?: Store
}

/** Plays a recording to its end. */
export const replay = Effect.fnUntraced(function* (recording: Recordings.Recording, options: Options) {
  const { cassette, instructions, question } = recording
  const adapter = adapters.get(cassette.vendor)
  if (adapter === undefined) {
    return yield* usage(
      `${excerpt(recording.name, 80)} was recorded with '${excerpt(cassette.vendor, 40)}'; known: ${Array.from(adapters.keys()).join(", ")}`
    )
  }
  const provider = yield* ReplayProvider.make(cassette, yield* adapter)
  const agent = Agent.make({
    instructions,
    model: Model.make(cassette.model, { provider: cassette.vendor }),
    skills: "all",
    ...(options.maxSteps === undefined ? {} : { maxSteps: options.maxSteps })
  })
  const needs = Layer.merge(
    Layer.orDie(SkillRegistry.layer(...(options.skills ?? Skills.all))),
    Layer.succeed(Provider, unhurried(provider))
  )
  return yield* follow(Kernel.stream(agent, question), {
    ...options,
    title: `recorded conversation ${recording.name} with ${cassette.model}: no key is needed, skills run now`,
    question,
    kept: options.store !== undefined,
    check: (result) => differs(recording.answer, result.text)
  }).pipe(Effect.provide(Layer.provide(kernelOn(options.store), needs)))
})

const kernelOn = (store: Store | undefined) =>
  store === undefined
    ? Kernel.layerMemory
    : Layer.provide(Kernel.layer, [Layer.orDie(ProtocolRegistry.layer()), MediaStore.layerMemory, store])

/** Plays the recording that comes with the package: `kernai run` and nothing else. */
export const replayStandard = Effect.flatMap(Recordings.open(Recordings.standard, "."), (recording) =>
  replay(recording, { form: "text" })
)

/** A recorded answer is there at once; the screen still comes first, as it does when a network is waited for. */
const unhurried = (provider: ProviderShape): ProviderShape => ({
  ...provider,
  stream: (request) => Stream.unwrap(Effect.as(Effect.yieldNow, provider.stream(request)))
})

const key = Redacted.make("recorded")

type Playing = Effect.Effect<ProviderShape, never, HttpClient>

const adapter = (
  load: () => Promise<{ readonly make: (options: { readonly apiKey: Redacted.Redacted }) => Playing }>
): Effect.Effect<Playing> => Effect.map(Effect.promise(load), ({ make }) => make({ apiKey: key }))

// Loaded when one is played: the others are never needed.
const adapters: ReadonlyMap<string, Effect.Effect<Playing>> = new Map([
  ["anthropic", adapter(() => import("../provider/AnthropicProvider.ts"))],
  ["openai", adapter(() => import("../provider/OpenAiProvider.ts"))],
  ["google", adapter(() => import("../provider/GeminiProvider.ts"))],
  ["google-interactions", adapter(() => import("../provider/GeminiInteractionsProvider.ts"))],
  ["ollama", adapter(() => import("../provider/OllamaProvider.ts"))]
])

const differs = (recorded: string | undefined, answer: string): string | undefined =>
  recorded === undefined || recorded.trim() === answer.trim()
    ? undefined
    : `the answer is not the recorded one: expected ${quoted(recorded)}, got ${quoted(answer)}`

const quoted = (text: string): string => JSON.stringify(excerpt(text, 200))
