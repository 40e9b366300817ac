/**
 * Plays a recorded conversation. Only the model's replies come from a file. The vendor's adapter, the kernel and the
 * skills are real, and a request or an answer that differs from the recording fails the run.
 */

import * as Effect from "effect/Effect"
import type { HttpClient } from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Agent from "../Agent.ts"
import * as Kernel from "../Kernel.ts"
import * as Model from "../Model.ts"
import * as ProtocolRegistry from "../ProtocolRegistry.ts"
import type { ProviderShape } from "../Provider.ts"
import type { AnySkill } from "../Skill.ts"
import * as SkillRegistry from "../SkillRegistry.ts"
import * as ReplayProvider from "../testing/ReplayProvider.ts"
import { usage } from "./exit.ts"
import { follow, type Options as FollowOptions } from "./followRun.ts"
import * as KernelLayer from "./kernelLayer.ts"
import * as Store from "./storeFlag.ts"
import { excerpt } from "./terminalText.ts"
import type { Recording } from "./demo/recordings.ts"
import * as Skills from "./demo/skills.ts"

interface Options extends Pick<FollowOptions, "form" | "color" | "store"> {
  readonly maxSteps?: number | undefined
  /** Default: the example skills. */
  readonly skills?: ReadonlyArray<AnySkill>
  /** The open store. Default: the run is not stored. */
  readonly opened?: Store.Store
}

export const replay = Effect.fnUntraced(function* (recording: Recording, options: Options) {
  const { cassette, instructions, name, question } = recording
  const adapter = adapters.get(cassette.vendor)
  if (adapter === undefined) {
    return yield* usage(
      `${excerpt(name, 80)} was recorded with '${excerpt(cassette.vendor, 40)}'; known: ${Array.from(adapters.keys()).join(", ")}`
    )
  }
  const agent = Agent.make({
    instructions,
    model: Model.make(cassette.model, { provider: cassette.vendor }),
    skills: "all",
    ...(options.maxSteps === undefined ? {} : { maxSteps: options.maxSteps })
  })
  const skills = SkillRegistry.layer(...(options.skills ?? Skills.all))
  const kernel = KernelLayer.make({
    provider: yield* ReplayProvider.make(cassette, yield* adapter),
    registries: Layer.orDie(Layer.merge(skills, ProtocolRegistry.layer())),
    store: options.opened ?? Store.memory,
    references: Layer.empty
  })
  return yield* follow(Kernel.stream(agent, question), {
    ...options,
    title: `recorded conversation ${name} with ${cassette.model}: no key is needed, skills run now`,
    question,
    check: ({ text }) => differenceOf(recording.answer, text)
  }).pipe(Effect.provide(kernel))
})

type Adapter = Effect.Effect<ProviderShape, never, HttpClient>

const adapter = (
  load: () => Promise<{ readonly make: (options: { readonly apiKey: Redacted.Redacted }) => Adapter }>
): Effect.Effect<Adapter> => Effect.map(Effect.promise(load), ({ make }) => make({ apiKey: Redacted.make("recorded") }))

const adapters: ReadonlyMap<string, Effect.Effect<Adapter>> = new Map([
  ["anthropic", adapter(() => import("../provider/AnthropicProvider.ts"))],
  ["openai", adapter(() => import("../provider/OpenAiProvider.ts"))],
  ["google", adapter(() => import("../provider/GeminiProvider.ts"))],
  ["google-interactions", adapter(() => import("../provider/GeminiInteractionsProvider.ts"))],
  ["ollama", adapter(() => import("../provider/OllamaProvider.ts"))]
])

const differenceOf = (recorded: string | undefined, answer: string): string | undefined =>
  recorded === undefined || recorded.trim() === answer.trim()
    ? undefined
    : `the answer is not the recorded one: expected ${quoted(recorded)}, got ${quoted(answer)}`

const quoted = (text: string): string => JSON.stringify(excerpt(text, 200))
