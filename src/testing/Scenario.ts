/**
 * A whole conversation as a value: what is asked, with which skills, and what must come of it (BP-180).
 *
 * A scenario runs against any model, and offline against its own script. `run`
 * always ends with a report: a model that fails, gives up or misses what was
 * expected is a finding, not an error. Root and tasks are told apart in it
 * (W-41); `save` keeps it under a name of its own.
 *
 * @since 0.1.0
 */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import type * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import type * as Scope from "effect/Scope"
import * as Agent from "../Agent.ts"
import * as Contents from "../Content.ts"
import type { JsonObject } from "../internal/base/json.ts"
import { redact } from "../internal/base/redact.ts"
import * as Kernel from "../Kernel.ts"
import * as MediaStore from "../MediaStore.ts"
import type { Capability, Model } from "../Model.ts"
import * as Models from "../Model.ts"
import type { AnyProtocol } from "../Protocol.ts"
import * as ProtocolRegistry from "../ProtocolRegistry.ts"
import type { ProviderShape } from "../Provider.ts"
import * as Recorder from "../Recorder.ts"
import * as RunStore from "../RunStore.ts"
import type { AnySkill } from "../Skill.ts"
import * as SkillRegistry from "../SkillRegistry.ts"
import * as Outcome from "./internal/outcome.ts"
import * as Logs from "./internal/scenarioLog.ts"
import * as Scripts from "./internal/scriptedModel.ts"

// ---------------------------------------------------------------- models

export type {
  /**
   * What a scripted model says: the root run turn by turn, and each task by its id. A task is known by its input, so
   * those of a script have different ones.
   *
   * @category models
   * @since 0.1.0
   */
  Script,
  /**
   * One reply of a script.
   *
   * @category models
   * @since 0.1.0
   */
  Line,
  /**
   * How a scripted model streams: a text at once, by words, or by characters.
   *
   * @category models
   * @since 0.1.0
   */
  Style
} from "./internal/scriptedModel.ts"

/**
 * What a scenario is made of.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  readonly name: string
  readonly description?: string | undefined
  readonly instructions: string | Effect.Effect<string>
  /**
   * Its skills, for this scenario alone; without them, and without `mcp`, the agent has none (BP-183). What else than a
   * `MediaStore` a skill needs is provided in its `execute`.
   */
  readonly skills?: ReadonlyArray<AnySkill<MediaStore.MediaStore>> | undefined
  readonly protocols?: ReadonlyArray<AnyProtocol<MediaStore.MediaStore>> | undefined
  /** MCP servers: the path of a YAML file, or its content. Whoever runs the scenario connects them. */
  readonly mcp?: string | JsonObject | undefined
  /** What the model can do, whatever its id says (BP-182). */
  readonly capabilities?: ReadonlyArray<Capability> | undefined
  readonly input: Kernel.Input
  /** Default: 10. */
  readonly maxSteps?: number | undefined
  /** Other settings of the agent: budget, spawn, concurrency, dialect, generation … */
  readonly agent?: Partial<Omit<Agent.Options<never>, "instructions" | "model" | "maxSteps" | "name">> | undefined
  /** The model of a run without a network: a script, or a recorded provider. */
  readonly offline?: Scripts.Script | Effect.Effect<ProviderShape, { readonly message: string }> | undefined
  /** Says what is wrong with a run that gave an answer, one sentence each. */
  readonly expect?: ((report: Outcome.Report) => ReadonlyArray<string>) | undefined
}

/**
 * A scenario. Made by `make`, run by `run`.
 *
 * @category models
 * @since 0.1.0
 */
export interface Scenario extends Options {
  readonly "~kernai/testing/Scenario": true
  readonly description: string
  readonly maxSteps: number
}

export type {
  /**
   * Why there is no result, or what is wrong with it.
   *
   * @category models
   * @since 0.1.0
   */
  Failure,
  /**
   * How a scenario ended: as expected, without a result or not as expected, or not run for want of something.
   *
   * @category models
   * @since 0.1.0
   */
  Status,
  /**
   * A run of a scenario, as its log holds it (BP-184).
   *
   * @category models
   * @since 0.1.0
   */
  Report,
  /**
   * A run, a turn, a task or a call of a report, with what happened inside.
   *
   * @category models
   * @since 0.1.0
   */
  Node
} from "./internal/outcome.ts"

/**
 * Who plays the model.
 *
 * @category models
 * @since 0.1.0
 */
export interface Cast {
  readonly provider: ProviderShape
  readonly model: Model
}

/**
 * How a scenario is run.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunOptions {
  /** Without one the scenario runs offline. */
  readonly cast?: Cast | undefined
  /** Connects MCP servers for one run; a failure skips the scenario (BP-183). */
  readonly connect?:
    | ((
        mcp: string | JsonObject
      ) => Effect.Effect<
        void,
        { readonly message: string },
        SkillRegistry.SkillRegistry | ProtocolRegistry.ProtocolRegistry | Scope.Scope
      >)
    | undefined
  /** Hears of every event as it happens. */
  readonly recorder?: Recorder.Sink | undefined
}

// ---------------------------------------------------------------- constructors

/**
 * Makes a scenario.
 *
 * @example
 * export default Scenario.make({
 *   name: "greeting",
 *   instructions: "You greet.",
 *   input: "Hello!",
 *   offline: { root: ['<block type="final">Hello to you.</block>'] },
 *   expect: ({ result }) => (result?.includes("Hello") ? [] : ["it does not greet back"])
 * })
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: Options): Scenario => ({
  ...options,
  "~kernai/testing/Scenario": true,
  description: options.description ?? "",
  maxSteps: options.maxSteps ?? 10
})

/**
 * A provider that follows a script. It keeps no state: the conversation says whose turn it is and which.
 *
 * @category constructors
 * @since 0.1.0
 */
export const scripted: (script: Scripts.Script, style?: Scripts.Style, name?: string) => ProviderShape =
  Scripts.provider

/**
 * The model that plays a scenario offline; undefined when it has none.
 *
 * @category constructors
 * @since 0.1.0
 */
export const offline = (
  scenario: Scenario,
  style: Scripts.Style = "whole"
): Effect.Effect<Cast, { readonly message: string }> | undefined => {
  const { capabilities = ["text"], offline } = scenario
  if (offline === undefined) return undefined
  if ("root" in offline) {
    const model = Models.make(style, { capabilities, provider: "script" })
    return Effect.succeed({ provider: scripted(offline, style), model })
  }
  return Effect.map(offline, (provider) => ({
    provider,
    model: Models.make("recorded", { capabilities, provider: provider.name })
  }))
}

// ---------------------------------------------------------------- guards

/**
 * Tells whether a value is a scenario.
 *
 * @category guards
 * @since 0.1.0
 */
export const isScenario = (value: unknown): value is Scenario =>
  typeof value === "object" && value !== null && "~kernai/testing/Scenario" in value

// ---------------------------------------------------------------- running

/**
 * Runs a scenario to its report.
 *
 * @category running
 * @since 0.1.0
 */
export const run = Effect.fnUntraced(function* (
  scenario: Scenario,
  options: RunOptions = {}
): Effect.fn.Return<Outcome.Report> {
  const startedAt = yield* Clock.currentTimeMillis
  const cast = yield* Effect.exit(castOf(scenario, options.cast))
  const who = Exit.isSuccess(cast) ? cast.value : undefined
  const recording = Recorder.memory({ redact })
  const exit = Exit.isFailure(cast)
    ? Exit.failCause(cast.cause)
    : yield* Effect.exit(play(scenario, cast.value, options, recording))
  const report = Outcome.report({
    scenario: scenario.name,
    description: scenario.description,
    provider: who?.provider.name ?? "none",
    model: who?.model.id ?? "none",
    input: inputOf(scenario.input),
    maxSteps: scenario.maxSteps,
    skills: scenario.skills?.map((skill) => skill.name) ?? null,
    startedAt,
    finishedAt: yield* Clock.currentTimeMillis,
    exit,
    entries: recording.entries()
  })
  return report.status === "ok" ? Outcome.judged(report, problemsOf(scenario, report)) : report
})

/** What a scenario says is wrong; one that cannot say it is a finding too. */
const problemsOf = ({ expect }: Scenario, report: Outcome.Report): ReadonlyArray<string> => {
  try {
    return expect?.(report) ?? []
  } catch (error) {
    return [`what was expected could not be looked at: ${error instanceof Error ? error.message : String(error)}`]
  }
}

const castOf = (scenario: Scenario, named: Cast | undefined): Effect.Effect<Cast, Outcome.Skipped> => {
  const cast = named === undefined ? offline(scenario) : Effect.succeed(named)
  return cast === undefined
    ? Effect.fail(new Outcome.Skipped("it has no offline model, and no other was named"))
    : Effect.mapError(cast, (error) => new Outcome.Skipped(error.message))
}

/** One run in a house of its own: registries and stores hold this scenario's things and nothing else. */
const play = (scenario: Scenario, cast: Cast, options: RunOptions, recording: Recorder.Memory) => {
  const model =
    scenario.capabilities === undefined ? cast.model : { ...cast.model, capabilities: scenario.capabilities }
  const agent = Agent.make({
    ...scenario.agent,
    name: scenario.name,
    instructions: scenario.instructions,
    model,
    maxSteps: scenario.maxSteps,
    ...(scenario.skills === undefined && scenario.mcp === undefined ? {} : { skills: "all" as const })
  })
  const sink = options.recorder === undefined ? recording : Recorder.composite(recording, options.recorder)
  const house = Layer.mergeAll(
    SkillRegistry.layer(...(scenario.skills ?? [])),
    ProtocolRegistry.layer(...(scenario.protocols ?? [])),
    RunStore.layerMemory
  ).pipe(Layer.provideMerge(MediaStore.layerMemory))
  const connected = Effect.mapError(connect(scenario, options), (error) => new Outcome.Skipped(error.message))
  return Effect.scoped(Effect.andThen(connected, Kernel.run(agent, scenario.input, { provider: cast.provider }))).pipe(
    Effect.provide(Layer.provideMerge(Kernel.layerNoProvider, house)),
    Effect.provideService(Recorder.Recorder, sink)
  )
}

const connect = (scenario: Scenario, options: RunOptions) => {
  if (scenario.mcp === undefined) return Effect.void
  return options.connect === undefined
    ? Effect.fail(new Outcome.Skipped("nobody here connects MCP servers"))
    : options.connect(scenario.mcp)
}

/**
 * A report under its names on the wire (BP-184).
 *
 * @category codecs
 * @since 0.1.0
 */
export const toJson: (report: Outcome.Report) => JsonObject = Outcome.toJson

/**
 * Keeps a report as a file of its own in a folder, names it in the folder's `manifest.json`, and gives its path (BP-184).
 *
 * A `manifest.json` of more than `Limits.fetchedBytes` is left as it is, and saving fails.
 *
 * @category running
 * @since 0.1.0
 */
export const save: (
  report: Outcome.Report,
  directory: string
) => Effect.Effect<string, PlatformError, FileSystem.FileSystem | Path.Path> = Logs.save

/** What was asked, as text: media by what they are. */
const inputOf = (input: Kernel.Input): string =>
  [input]
    .flat()
    .map((part) =>
      typeof part === "string" ? part : "kind" in part ? `[${part.kind}: ${part.mimeType}]` : Contents.toText(part)
    )
    .join("\n")
