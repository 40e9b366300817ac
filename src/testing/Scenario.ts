/**
 * A whole conversation as a value: its input, its skills, and the expected result.
 *
 * A scenario runs against any model, or offline against its own script. `run` always returns a report: a model that
 * fails, gives up or misses an expectation is a finding, not an error. The report separates the root run from its
 * tasks. `save` stores it under a unique name.
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
import type { JsonObject } from "../kit/json.ts"
import { redact } from "../kit/redact.ts"
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
import * as Reports from "./internal/scenarioReport.ts"
import * as Scripts from "./internal/scriptedModel.ts"

// ---------------------------------------------------------------- models

export type {
  /**
   * The replies of a scripted model: those of the root run turn by turn, and those of each task by its id. A task is
   * recognized by its input, so tasks of one script need different inputs.
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
   * How a scripted model streams a text: at once, by words, or by characters.
   *
   * @category models
   * @since 0.1.0
   */
  Style
} from "./internal/scriptedModel.ts"

/**
 * The parts of a scenario.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  readonly name: string
  readonly description?: string | undefined
  readonly instructions: string | Effect.Effect<string>
  /**
   * The skills of this scenario. Without them, and without `mcp`, the agent has none. Provide services other than
   * `MediaStore` inside `execute`.
   */
  readonly skills?: ReadonlyArray<AnySkill<MediaStore.MediaStore>> | undefined
  readonly protocols?: ReadonlyArray<AnyProtocol<MediaStore.MediaStore>> | undefined
  /** MCP servers: the path of a YAML file, or its content. The runner of the scenario connects them. */
  readonly mcp?: string | JsonObject | undefined
  /** The capabilities of the model, whatever its id. */
  readonly capabilities?: ReadonlyArray<Capability> | undefined
  readonly input: Kernel.Input
  /** Default: 10. */
  readonly maxSteps?: number | undefined
  /** Other settings of the agent: budget, spawn, concurrency, dialect, generation … */
  readonly agent?: Partial<Omit<Agent.Options<never>, "instructions" | "model" | "maxSteps" | "name">> | undefined
  /** The model of a run without a network: a script, or a recorded provider. */
  readonly offline?: Scripts.Script | Effect.Effect<ProviderShape, { readonly message: string }> | undefined
  /** Returns the problems of a run with an answer, one sentence each. */
  readonly expect?: ((report: Reports.Report) => ReadonlyArray<string>) | undefined
}

/**
 * A scenario. Create it with `make`, run it with `run`.
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
   * The reason why there is no result, or the problems of the result.
   *
   * @category models
   * @since 0.1.0
   */
  Failure,
  /**
   * The end of a scenario: as expected, not as expected or without a result, or skipped because something is missing.
   *
   * @category models
   * @since 0.1.0
   */
  Status,
  /**
   * The report of a run, as it is stored.
   *
   * @category models
   * @since 0.1.0
   */
  Report,
  /**
   * A run, a turn, a task or a call of a report, with its children.
   *
   * @category models
   * @since 0.1.0
   */
  Node
} from "./internal/scenarioReport.ts"

/**
 * The model that a scenario runs against.
 *
 * @category models
 * @since 0.1.0
 */
export interface Cast {
  readonly provider: ProviderShape
  readonly model: Model
}

/**
 * Options of a run.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunOptions {
  /** The model to run against. Default: the offline model of the scenario. */
  readonly cast?: Cast | undefined
  /** Connects MCP servers for one run. A failure skips the scenario. */
  readonly connect?:
    | ((
        mcp: string | JsonObject
      ) => Effect.Effect<
        void,
        { readonly message: string },
        SkillRegistry.SkillRegistry | ProtocolRegistry.ProtocolRegistry | Scope.Scope
      >)
    | undefined
  /**
   * The dialect, instead of that of the scenario.
   *
   * @since 0.1.0
   */
  readonly dialect?: Agent.Agent["dialect"] | undefined
  /** Receives every event as it happens. */
  readonly recorder?: Recorder.Sink | undefined
  /**
   * The stores of the run and its media. Default: in memory, until it ends.
   *
   * @since 0.1.0
   */
  readonly stores?: Layer.Layer<RunStore.RunStore | MediaStore.MediaStore> | undefined
}

// ---------------------------------------------------------------- constructors

/**
 * Creates a scenario.
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
 * Creates a provider that follows a script. It is stateless: the conversation decides which reply comes next.
 *
 * @category constructors
 * @since 0.1.0
 */
export const scripted: (script: Scripts.Script, style?: Scripts.Style, name?: string) => ProviderShape =
  Scripts.provider

/**
 * Returns the model that plays a scenario offline, or undefined if it has none.
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
 * Returns true for a scenario.
 *
 * @category guards
 * @since 0.1.0
 */
export const isScenario = (value: unknown): value is Scenario =>
  typeof value === "object" && value !== null && "~kernai/testing/Scenario" in value

// ---------------------------------------------------------------- running

/**
 * Runs a scenario and returns its report.
 *
 * @category running
 * @since 0.1.0
 */
export const run = Effect.fnUntraced(function* (
  scenario: Scenario,
  options: RunOptions = {}
): Effect.fn.Return<Reports.Report> {
  const startedAt = yield* Clock.currentTimeMillis
  const cast = yield* Effect.exit(castOf(scenario, options.cast))
  const who = Exit.isSuccess(cast) ? cast.value : undefined
  const recording = Recorder.memory({ redact })
  const exit = Exit.isFailure(cast)
    ? Exit.failCause(cast.cause)
    : yield* Effect.exit(play(scenario, cast.value, options, recording))
  const report = Reports.report({
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
  return report.status === "ok" ? Reports.judged(report, problemsOf(scenario, report)) : report
})

/** Returns the problems that a scenario reports. An `expect` that throws is a problem, too. */
const problemsOf = ({ expect }: Scenario, report: Reports.Report): ReadonlyArray<string> => {
  try {
    return expect?.(report) ?? []
  } catch (error) {
    return [`the expectation failed: ${error instanceof Error ? error.message : String(error)}`]
  }
}

const castOf = (scenario: Scenario, named: Cast | undefined): Effect.Effect<Cast, Reports.Skipped> => {
  const cast = named === undefined ? offline(scenario) : Effect.succeed(named)
  return cast === undefined
    ? Effect.fail(new Reports.Skipped("it has no offline model, and no model is named"))
    : Effect.mapError(cast, (error) => new Reports.Skipped(error.message))
}

/** Runs a scenario with registries and stores of its own. */
const play = (scenario: Scenario, cast: Cast, options: RunOptions, recording: Recorder.Memory) => {
  const model =
    scenario.capabilities === undefined ? cast.model : { ...cast.model, capabilities: scenario.capabilities }
  const agent = Agent.make({
    ...scenario.agent,
    ...(options.dialect === undefined ? {} : { dialect: options.dialect }),
    name: scenario.name,
    instructions: scenario.instructions,
    model,
    maxSteps: scenario.maxSteps,
    ...(scenario.skills === undefined && scenario.mcp === undefined ? {} : { skills: "all" as const })
  })
  const sink = options.recorder === undefined ? recording : Recorder.composite(recording, options.recorder)
  const house = Layer.mergeAll(
    SkillRegistry.layer(...(scenario.skills ?? [])),
    ProtocolRegistry.layer(...(scenario.protocols ?? []))
  ).pipe(Layer.provideMerge(options.stores ?? Layer.merge(RunStore.layerMemory, MediaStore.layerMemory)))
  const connected = Effect.mapError(connect(scenario, options), (error) => new Reports.Skipped(error.message))
  return Effect.scoped(Effect.andThen(connected, Kernel.run(agent, scenario.input, { provider: cast.provider }))).pipe(
    Effect.provide(Layer.provideMerge(Kernel.layerNoProvider, house)),
    Effect.provideService(Recorder.Recorder, sink)
  )
}

const connect = (scenario: Scenario, options: RunOptions) => {
  if (scenario.mcp === undefined) return Effect.void
  return options.connect === undefined
    ? Effect.fail(new Reports.Skipped("MCP servers are not connected here"))
    : options.connect(scenario.mcp)
}

/**
 * Encodes a report with the names of its wire format.
 *
 * @category codecs
 * @since 0.1.0
 */
export const toJson: (report: Reports.Report) => JsonObject = Reports.toJson

/**
 * Stores a report as a file in a folder, adds it to the folder's `manifest.json`, and returns its path.
 *
 * Fails if `manifest.json` is larger than `Limits.fetchedBytes`, and then leaves it unchanged.
 *
 * @category running
 * @since 0.1.0
 */
export const save: (
  report: Reports.Report,
  directory: string
) => Effect.Effect<string, PlatformError, FileSystem.FileSystem | Path.Path> = Reports.save

/** Returns the input as text, with media by their kind. */
const inputOf = (input: Kernel.Input): string =>
  [input]
    .flat()
    .map((part) =>
      typeof part === "string" ? part : "kind" in part ? `[${part.kind}: ${part.mimeType}]` : Contents.toText(part)
    )
    .join("\n")
