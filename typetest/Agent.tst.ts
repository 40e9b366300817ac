/**
 * What is inferred of agents, their configs, and the bridges to other packages.
 */
import type { LanguageModelV2, LanguageModelV3, LanguageModelV4 } from "@ai-sdk/provider"
import { Context, Effect, Layer, Schema, Stream } from "effect"
import type { CircuitBreaker } from "effect/persistence"
import { type LanguageModel, Tool, Toolkit } from "effect/ai"
import {
  Agent,
  Chat,
  type ChatHistory,
  Kernel,
  type KernelError,
  Middleware,
  ModelRegistry,
  Policy,
  PromptPipeline,
  Protocol,
  type Provider,
  Recorder,
  type RunState,
  RunStore,
  Skill,
  SkillRegistry,
  type StreamPart
} from "kernai"
import type { Result } from "effect"
import { AiSdkProvider, KernaiLanguageModel, LanguageModelProvider, Resilience, SkillTools } from "kernai/provider"
import { SqlRunStore } from "kernai/sql"
import { CrashMatrix, MockProvider, Scenario } from "kernai/testing"

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const yes = <T extends true>(): T | undefined => undefined

// ---------------------------------------------------------------- configs

const Book = Schema.Struct({ title: Schema.String })

export const plain = Agent.fromConfig({})
yes<Equal<typeof plain, Result.Result<Agent.Agent, KernelError.AgentConfigInvalid>>>()

export const typed = Agent.fromConfig({}, { output: Book })
yes<Equal<typeof typed, Result.Result<Agent.Agent<{ readonly title: string }>, KernelError.AgentConfigInvalid>>>()

class Clock extends Context.Service<Clock, { readonly now: Effect.Effect<string> }>()("type/Clock") {}
const timely = Agent.make({ instructions: Effect.flatMap(Clock, (clock) => clock.now), model: "m", output: Book })
export const run = Kernel.run(timely, "now", { steering: undefined as never })
yes<
  Equal<
    typeof run,
    Effect.Effect<RunState.RunResult<{ readonly title: string }>, Kernel.RunError, Clock | Kernel.Kernel>
  >
>()

// An agent is made of another without `make`, which would take its output for a schema of the caller.
export const native: typeof timely = { ...timely, dialect: "tools" }
// Where its instructions become a text, and its agents, provider and check need no more, it needs nothing any more.
const noon = {
  ...timely,
  instructions: "It is noon.",
  agents: [],
  handoffs: [],
  provider: undefined,
  until: undefined
}
export const plainly = Kernel.run(noon, "now")
yes<
  Equal<typeof plainly, Effect.Effect<RunState.RunResult<{ readonly title: string }>, Kernel.RunError, Kernel.Kernel>>
>()
export const chatted = Chat.chat(noon, "now")
yes<Equal<Effect.Services<typeof chatted>, Kernel.Kernel | ChatHistory.ChatHistory>>()
export const crashed = CrashMatrix.run({
  agent: noon,
  input: "now",
  layer: SkillRegistry.layer()
})
yes<Equal<Effect.Services<typeof crashed>, never>>()
// A check reads the decoded answer, and its services are services of the run.
const checked = Agent.make({
  instructions: "You count.",
  model: "m",
  output: Book,
  until: ({ title }) => Effect.map(Clock, () => (title === "" ? "the title is empty" : undefined))
})
export const checking = Kernel.run(checked, "now")
yes<Equal<Effect.Services<typeof checking>, Clock | Kernel.Kernel>>()
export const misread = Agent.make({
  instructions: "You count.",
  model: "m",
  output: Book,
  // @ts-expect-error the answer has no such field
  until: ({ pages }) => Effect.succeed(pages)
})
// @ts-expect-error an agent is no options
export const remade = Agent.make({ ...timely, dialect: "tools" })

// ---------------------------------------------------------------- tools

class Atlas extends Context.Service<Atlas, { readonly find: (name: string) => string }>()("type/Atlas") {}
const find = Tool.make("find", {
  parameters: Schema.Struct({ name: Schema.String }),
  success: Schema.String,
  dependencies: [Atlas]
})
export const skills = SkillRegistry.layer(...SkillTools.fromToolkit(Toolkit.make(find)))
yes<
  Equal<typeof skills, Layer.Layer<SkillRegistry.SkillRegistry, KernelError.ToolNameConflict, Tool.Handler<"find">>>
>()

const look = Skill.make("look", {
  description: "Looks",
  input: Schema.Struct({}),
  execute: () => Effect.as(Atlas, "seen")
})
const wait = Skill.make("wait", { description: "Waits", input: Schema.Struct({}), execute: () => Effect.as(Clock, "") })
export const toolkit = SkillTools.toToolkit(look, wait)
type Services<T> = T extends Effect.Effect<infer _A, infer _E, infer R> ? R : never
yes<Equal<Services<typeof toolkit>, Atlas | Clock>>()

// ---------------------------------------------------------------- questions

export const questions = Kernel.questions("r")
yes<
  Equal<
    typeof questions,
    Effect.Effect<
      ReadonlyArray<RunState.OpenQuestion>,
      KernelError.RunNotFound | KernelError.StoreError,
      RunStore.RunStore
    >
  >
>()

export const answered = Kernel.answer("r", [])
yes<
  Equal<
    typeof answered,
    Effect.Effect<
      void,
      | KernelError.QuestionNotFound
      | KernelError.AnswerRefused
      | KernelError.ConcurrentAppendError
      | KernelError.RunBusy
      | KernelError.RunCancelled
      | KernelError.RunNotFound
      | KernelError.StoreError,
      RunStore.RunStore
    >
  >
>()

export const records = RunStore.recordsOf("r")
yes<
  Equal<
    typeof records,
    Effect.Effect<
      ReadonlyArray<RunState.RunRecord>,
      KernelError.RunNotFound | KernelError.StoreError,
      RunStore.RunStore
    >
  >
>()

// ---------------------------------------------------------------- skills of an agent

const own = Skill.make("own", { description: "", input: Schema.Struct({}), execute: () => Effect.succeed(1) })
export const listed = [
  Agent.make({ instructions: "", model: "m", skills: [own, "mcp_files__read"] }),
  Agent.make({ instructions: "", model: "m", skills: ["mcp_files__read", own] })
] as const
// A name beside a value leaves its events typed, and has events of its own name.
yes<Equal<(typeof listed)[0], Agent.Agent<string, typeof own | Agent.Named<"mcp_files__read">>>>()
yes<Equal<(typeof listed)[1], Agent.Agent<string, typeof own | Agent.Named<"mcp_files__read">>>>()

export const typedAndListed = Agent.make({ instructions: "", model: "m", skills: [own, "other"], output: Book })
yes<Equal<typeof typedAndListed, Agent.Agent<{ readonly title: string }, typeof own | Agent.Named<"other">>>>()

export const named = Agent.make({ instructions: "", model: "m", skills: ["mcp_files__read"] })
yes<Equal<typeof named, Agent.Agent<string, Agent.Named<"mcp_files__read">>>>()
export const several = Agent.make({ instructions: "", model: "m", skills: [own, look] })
// What a skill value needs, the runs of its agent need.
yes<Equal<typeof several, Agent.Agent<string, typeof own | typeof look, Atlas>>>()

export const everything = Agent.make({ instructions: "", model: "m", skills: "all", output: Book })
yes<Equal<typeof everything, Agent.Agent<{ readonly title: string }>>>()
export const noSkills = Agent.make({ instructions: "", model: "m", skills: [] })
// An agent without skills has no events of any.
yes<Equal<typeof noSkills, Agent.Agent<string, never>>>()
export const bookish = Agent.make({ instructions: "", model: "m", skills: [own], output: Book })
yes<Equal<typeof bookish, Agent.Agent<{ readonly title: string }, typeof own>>>()
export const untyped = Agent.make({ instructions: "", model: "m", output: undefined })
yes<Equal<typeof untyped, Agent.Agent<string, never>>>()
// The output is that of the schema, whatever the place it is put into expects.
// @ts-expect-error without a schema the answer is a text
export const assumed: Agent.Agent<{ readonly title: string }> = Agent.make({ instructions: "", model: "m" })
// A schema that is only known by its type types the answer, too.
export const ofSchema = <A>(schema: Schema.ConstraintDecoder<A>): Agent.Agent<A> =>
  Agent.make({ instructions: "", model: "m", output: schema })

// ---------------------------------------------------------------- models

export const providers = (two: LanguageModelV2, three: LanguageModelV3, four: LanguageModelV4) => [
  AiSdkProvider.fromModel(two),
  AiSdkProvider.fromModel(three),
  AiSdkProvider.fromModel((_id) => four)
]
// @ts-expect-error a model is no provider of models
AiSdkProvider.fromModel("gpt-5")

yes<
  Equal<
    ReturnType<typeof KernaiLanguageModel.layer>,
    Layer.Layer<LanguageModel.LanguageModel, never, Provider.Provider>
  >
>()
yes<
  Equal<
    ReturnType<typeof LanguageModelProvider.layer>,
    Layer.Layer<Provider.Provider, never, LanguageModel.LanguageModel>
  >
>()

// ---------------------------------------------------------------- middleware

export const patient = Resilience.layer(Resilience.retry())
yes<Equal<typeof patient, Layer.Layer<never, never, never>>>()

export const careful = Resilience.layer(
  Resilience.fallback(["a/b"]),
  Resilience.retry({ attempts: 2 }),
  Resilience.circuitBreaker()
)
yes<
  Equal<
    typeof careful,
    Layer.Layer<
      never,
      KernelError.InvalidModel | KernelError.UnsupportedProvider,
      ModelRegistry.ModelRegistry | CircuitBreaker.CircuitBreaker
    >
  >
>()

// ---------------------------------------------------------------- several

const facts = Agent.make({ instructions: "", model: "m", output: Schema.Struct({ city: Schema.String }) })
const word = Agent.make({ instructions: "", model: "m" })
const house: Record<string, Agent.Agent<unknown>> = { facts, word }
const either: Agent.Agent<string | { readonly city: string }> = house["word"] === word ? word : facts
export const ofHouse = Kernel.run(house["facts"] ?? word, "")
yes<Equal<typeof ofHouse, Effect.Effect<RunState.RunResult<unknown>, Kernel.RunError, Kernel.Kernel>>>()
export const ofEither = Kernel.run(either, "")
yes<Equal<Effect.Success<typeof ofEither>["output"], string | { readonly city: string }>>()

// ---------------------------------------------------------------- options

// What is left out may be undefined as well, even where the compiler tells the two apart.
const given: { readonly text?: string; readonly count?: number; readonly list?: ReadonlyArray<never> } = {}
export const asked = Kernel.run(
  Agent.make({ instructions: "", model: "m", name: given.text, maxSteps: given.count, skills: given.list }),
  "",
  { runId: given.text, history: given.list, workerId: given.text, allowedSkills: given.list }
)
export const resumed = Kernel.resume(timely, "", { answers: given.list, revision: given.count })
export const measured = Skill.make("measured", {
  description: "",
  input: Schema.Struct({}),
  timeout: given.count,
  requires: given.list,
  execute: () => Effect.void
})
export const guarded = Policy.layerRules({ deny: given.list, hide: given.list })
export const wrapped = Middleware.layer({ callTool: given.count === 1 ? (call, next) => next(call) : undefined })
class Ledger extends Context.Service<
  Ledger,
  { readonly add: (usage: StreamPart.ReportedUsage) => Effect.Effect<void> }
>()("test/Ledger") {}
export const costs = Layer.unwrap(
  Effect.map(Ledger, (ledger) =>
    Middleware.layer({
      callModel: (call, next) =>
        Stream.tap(next(call), (part) => (part.type === "finish" ? ledger.add(part.usage) : Effect.void))
    })
  )
)
yes<Equal<typeof costs, Layer.Layer<never, never, Ledger>>>()
export const spoken = Protocol.make("p", {
  documentation: given.text,
  timeout: given.count,
  handle: () => Effect.void
})
export const prompted = PromptPipeline.layer({ sections: given.list, compaction: { keep: given.count } })
yes<Equal<typeof prompted, Layer.Layer<never>>>()
export const kept = SqlRunStore.layerSqlite({ filename: "a.db", pollInterval: given.text === "" ? 20 : undefined })
export const heads = RunStore.RunStore.use((store) =>
  store.list({ agent: given.text, limit: given.count, status: given.list })
)
export const pruned = RunStore.prune({ updatedBefore: 0, agent: given.text, status: given.list })
export const returned = Skill.result("", { media: given.list, metadata: given.text === "" ? {} : undefined })
export const lined = Recorder.layerLogger({ debug: given.text === "" ? true : undefined })
export const known = ModelRegistry.layer({}, { models: given.list })
export const told = MockProvider.make({ text: given.text, calls: given.list }).withDelay({ first: given.count })
export const played = Scenario.make({
  name: "",
  instructions: "",
  input: "",
  maxSteps: given.count,
  skills: given.list,
  offline: { root: [{ text: "", delay: given.count }], tasks: given.text === "" ? {} : undefined }
})
export const cut = CrashMatrix.run(
  { agent: Agent.make({ instructions: "", model: "m" }), input: "", name: given.text, layer: SkillRegistry.layer() },
  { ways: given.list }
)

// ---------------------------------------------------------------- reports

// Whoever keeps what a test found can name its parts.
yes<Equal<CrashMatrix.Violation["rule"], CrashMatrix.Rule>>()
yes<Equal<Scenario.Report["failure"], Scenario.Failure | null>>()
yes<Equal<Parameters<NonNullable<CrashMatrix.Subject["verdict"]>>[1], CrashMatrix.Known>>()

// ---------------------------------------------------------------- errors

yes<Equal<KernelError.KernelError, typeof KernelError.KernelError.Type>>()
