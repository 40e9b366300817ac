/**
 * Plays the scenarios of durable-run.json against any RunStore.
 *
 * One scenario is one run id on one store; a step is a new process: nothing but
 * the store, the script position and the hooks' own counters survives it.
 */
import { Agent, type Call, Hooks, Kernel, Limits, MediaStore, Middleware, Policy, ProtocolRegistry } from "kernai"
import { Provider, RunStore, type RunState, Skill, SkillRegistry, StreamPart } from "kernai"
import { Cause, Deferred, Effect, Exit, Layer, Logger, Option, Schema, Stream } from "effect"
import * as Machines from "../../src/internal/machine.ts"
import { canonical } from "./canonical.ts"

type Json = Schema.Json
type JsonObject = { readonly [key: string]: Json }

interface Tool {
  readonly output?: Json
  readonly error?: string
  readonly idempotent?: boolean
  readonly middlewareThrows?: string
}
interface ScriptReply {
  readonly text?: string
  readonly toolCalls?: ReadonlyArray<{ readonly id: string; readonly name: string; readonly input: JsonObject }>
  readonly error?: string
  readonly outcome?: string
}
interface HookEntry {
  readonly hook: string
  readonly match?: {
    readonly toolName?: string
    readonly toolCallId?: string
    readonly turn?: number
    readonly contextLacks?: string
    readonly contextHas?: string
  }
  readonly times?: number
  readonly decision: {
    readonly context?: JsonObject
    readonly control?: Hooks.Control
    readonly throw?: string
    readonly value?: {
      readonly type?: string
      readonly error?: string
      readonly output?: Json
      readonly keep?: ReadonlyArray<string>
      readonly mergeInput?: JsonObject
      readonly wrapCommand?: string
    }
  }
}
interface Expectation {
  readonly events?: ReadonlyArray<string>
  readonly toolsRun?: ReadonlyArray<string>
  readonly hooks?: ReadonlyArray<string>
  readonly status?: JsonObject
  readonly revision?: number
  readonly error?: string
  readonly errorFields?: JsonObject
  readonly second?: Expectation
}
interface Step {
  readonly do: "run" | "resume" | "race" | "zombie"
  readonly tool?: string
  readonly crash?: {
    readonly afterRevision?: number
    readonly duringModel?: boolean
    readonly duringTool?: string
    readonly inHook?: string
  }
  readonly interrupt?: string
  readonly with?: {
    readonly context?: JsonObject
    readonly replay?: { readonly [id: string]: "retry" | "fail" | { readonly resolve: JsonObject } }
    readonly approvals?: ReadonlyArray<RunState.ApprovalAnswer>
    readonly rewind?: boolean
  }
  readonly expect: Expectation
}
export interface Scenario {
  readonly id: string
  readonly title: string
  readonly config: {
    readonly tools: { readonly [name: string]: Tool }
    readonly script: ReadonlyArray<ScriptReply>
    readonly hooks?: ReadonlyArray<HookEntry>
    readonly policy?: { readonly [tool: string]: { readonly decision: string; readonly reason?: string } }
    readonly context?: JsonObject
    readonly maxTurns?: number
    readonly toolConcurrency?: number
  }
  readonly steps: ReadonlyArray<Step>
  readonly final: JsonObject & { readonly journal?: ReadonlyArray<readonly [number, string, ReadonlyArray<string>]> }
}

/** A failure the script asks for. */
class Scripted extends Schema.TaggedError<Scripted>()("Scripted", { message: Schema.String }) {}

/** What survives a process: the script, the counters, and what the test watches. */
interface World {
  readonly scenario: Scenario
  position: number
  modelCalls: number
  readonly used: Map<HookEntry, number>
  readonly executions: Array<string>
  readonly inputs: Array<{ readonly toolCallId: string; readonly input: Json }>
}

/** What one process did. */
interface Seen {
  readonly events: Array<string>
  readonly toolsRun: Array<string>
  readonly hooks: Array<string>
}

export interface Difference {
  readonly where: string
  readonly expected: unknown
  readonly actual: unknown
}

// ---------------------------------------------------------------- what is understood

const known: { readonly [place: string]: ReadonlyArray<string> } = {
  scenario: ["id", "title", "rules", "config", "steps", "final", "note"],
  config: ["tools", "script", "hooks", "policy", "context", "maxTurns", "toolConcurrency"],
  tool: ["output", "error", "idempotent", "middlewareThrows"],
  reply: ["text", "toolCalls", "error", "outcome"],
  hook: ["hook", "match", "times", "decision"],
  match: ["toolName", "toolCallId", "turn", "contextLacks", "contextHas"],
  decision: ["context", "control", "throw", "value"],
  value: ["type", "error", "output", "keep", "mergeInput", "wrapCommand"],
  rule: ["decision", "reason"],
  step: ["do", "tool", "crash", "interrupt", "with", "expect"],
  crash: ["afterRevision", "duringModel", "duringTool", "inHook"],
  with: ["context", "replay", "approvals", "rewind"],
  expect: ["events", "toolsRun", "hooks", "status", "revision", "error", "errorFields", "second"],
  final: ["status", "toolExecutions", "toolInputs", "modelCalls", "turnsCompleted", "context", "openTurn", "journal"]
}

/** The first thing a scenario asks for that is not played here, if there is one. */
export const unknownIn = (scenario: Scenario): string | undefined => {
  const odd = (place: string, value: object | undefined) =>
    Object.keys(value ?? {})
      .filter((key) => known[place]?.includes(key) !== true)
      .map((key) => `${place}.${key}`)
  const { config, final, steps } = scenario
  // Of what is no run at all there is nothing more to look at.
  const [first] = odd("scenario", scenario)
  if (first !== undefined) return first
  return [
    ...odd("config", config),
    ...Object.values(config.tools).flatMap((tool) => odd("tool", tool)),
    ...config.script.flatMap((reply) => odd("reply", reply)),
    ...Object.values(config.policy ?? {}).flatMap((rule) => odd("rule", rule)),
    ...(config.hooks ?? []).flatMap((entry) => [
      ...odd("hook", entry),
      ...odd("match", entry.match),
      ...odd("decision", entry.decision),
      ...odd("value", entry.decision.value)
    ]),
    ...steps.flatMap((step) => [
      ...odd("step", step),
      ...odd("crash", step.crash),
      ...odd("with", step.with),
      ...odd("expect", step.expect),
      ...odd("expect", step.expect.second)
    ]),
    ...odd("final", final)
  ].at(0)
}

/** Plays a scenario and gives every difference from what it expects. */
export const play = Effect.fnUntraced(function* (scenario: Scenario) {
  const store = yield* RunStore.RunStore
  const runId = `run-${scenario.id}-${store_counter++}`
  const world: World = { scenario, position: 0, modelCalls: 0, used: new Map(), executions: [], inputs: [] }
  const differences: Array<Difference> = []
  const compare = (where: string, expected: unknown, actual: unknown) => {
    if (canonical(expected) !== canonical(actual)) differences.push({ where, expected, actual })
  }
  for (const [index, step] of scenario.steps.entries()) {
    const where = `${scenario.id} step ${index + 1}`
    if (step.do === "race") yield* race(world, store, runId, step, where, compare)
    else if (step.do === "zombie") yield* zombie(world, store, runId, step, where, compare)
    else {
      const seen = nothing()
      const outcome = yield* alone(world, store, runId, step, seen)
      yield* judge(world, store, runId, step.expect, seen, outcome, where, compare)
    }
  }
  yield* judgeEnd(world, store, runId, compare)
  return differences
})

let store_counter = 0
const nothing = (): Seen => ({ events: [], toolsRun: [], hooks: [] })

// ---------------------------------------------------------------- processes

/** A process of its own: what it is killed in the middle of never goes on. */
const boot = (
  world: World,
  runId: string,
  step: Step,
  seen: Seen,
  store: RunStore.Shape,
  machine = new Machines.World().boot("process")
) => {
  const point: Point = { step, machine, isReached: false, go: Deferred.makeUnsafe() }
  const fiber = machine.start(start(world, runId, step, seen, point, outside(store, machine)))
  const exit = () => fiber.pollUnsafe()
  const run = Machines.drive(
    machine.world,
    () => exit() !== undefined || machine.status !== "running" || point.isReached
  )
  const goOn = Effect.andThen(
    Effect.sync(() => {
      point.isReached = false
      Deferred.doneUnsafe(point.go, Exit.void)
    }),
    run
  )
  return { fiber, exit, run, goOn, machine }
}

/** The store is another process: what was sent to it is done, whatever becomes of the sender. */
const outside = (store: RunStore.Shape, machine: Machines.Machine): RunStore.Shape => ({
  ...RunStore.eachRevision(store),
  create: (record, state) => machine.ask(store.create(record, state)),
  commit: (record, state) => machine.ask(store.commit(record, state)),
  load: (runId) => machine.ask(store.load(runId)),
  head: (runId) => machine.ask(store.head(runId))
})

/** One process: it runs to its end, dies, or is interrupted at a point. */
const alone = Effect.fnUntraced(function* (world: World, store: RunStore.Shape, runId: string, step: Step, seen: Seen) {
  const process = boot(world, runId, step, seen, store)
  yield* process.run
  if (step.interrupt !== undefined && process.exit() === undefined) {
    process.fiber.interruptUnsafe()
    yield* process.goOn
  }
  return process.exit()
})

const race = Effect.fnUntraced(function* (
  world: World,
  store: RunStore.Shape,
  runId: string,
  step: Step,
  where: string,
  compare: Compare
) {
  const first = nothing()
  const second = nothing()
  const loaded = yield* store.load(runId)
  // Both workers have read the same head before either commits.
  const stale: RunStore.Shape = { ...store, load: () => Effect.succeed(loaded), head: () => Effect.succeedNone }
  const one = yield* alone(world, store, runId, { ...step, do: "resume" }, first)
  const two = yield* alone(world, stale, runId, { ...step, do: "resume" }, second)
  yield* judge(world, store, runId, step.expect, first, one, `${where} first`, compare)
  if (step.expect.second !== undefined) {
    yield* judge(world, store, runId, step.expect.second, second, two, `${where} second`, compare)
  }
})

const zombie = Effect.fnUntraced(function* (
  world: World,
  store: RunStore.Shape,
  runId: string,
  step: Step,
  where: string,
  compare: Compare
) {
  const first = nothing()
  const second = nothing()
  const asleep = boot(world, runId, { ...step, do: "run", interrupt: `tool:${step.tool}` }, first, store)
  yield* asleep.run
  const two = yield* alone(world, store, runId, { ...step, do: "resume" }, second)
  yield* asleep.goOn
  yield* judge(world, store, runId, step.expect, first, asleep.exit(), `${where} first`, compare)
  if (step.expect.second !== undefined) {
    yield* judge(world, store, runId, step.expect.second, second, two, `${where} second`, compare)
  }
})

interface Point {
  readonly step: Step
  readonly machine: Machines.Machine
  isReached: boolean
  readonly go: Deferred.Deferred<void>
}

/** Dies here, or stops here until told to go on, when the step says so. */
const at = (point: Point, name: string): Effect.Effect<void> => {
  const { crash, interrupt } = point.step
  const crashes =
    crash !== undefined &&
    ((crash.duringModel === true && name === "model") ||
      (crash.duringTool !== undefined && name === `tool:${crash.duringTool}`) ||
      (crash.inHook !== undefined && name === `hook:${crash.inHook}`))
  if (crashes) return die(point)
  if (interrupt !== name) return Effect.void
  point.isReached = true
  return Deferred.await(point.go)
}

const die = (point: Point): Effect.Effect<never> =>
  Effect.suspend(() => {
    point.machine.kill()
    return Effect.never
  })

const start = (
  world: World,
  runId: string,
  step: Step,
  seen: Seen,
  point: Point,
  store: RunStore.Shape
): Effect.Effect<unknown, unknown> => {
  const agent = Agent.make({
    name: "agent",
    instructions: "",
    model: { id: "scripted", capabilities: ["text"] },
    skills: "all",
    dialect: "tools",
    maxSteps: world.scenario.config.maxTurns ?? 20,
    concurrency: world.scenario.config.toolConcurrency ?? 1
  })
  const options = { context: world.scenario.config.context ?? {}, runId }
  const run =
    step.do === "run"
      ? Kernel.run(agent, "go", options)
      : Effect.flatMap(store.load(runId), (state) =>
          Kernel.resume(agent, runId, resumeOptions(world, step, Option.getOrUndefined(state)))
        )
  return run.pipe(Effect.provide(Layer.mergeAll(layers(world, seen, point, store), Logger.layer([]))), Effect.scoped)
}

const resumeOptions = (world: World, step: Step, state: RunState.RunState | undefined): Kernel.ResumeOptions => {
  const replay = step.with?.replay
  const turn = state?.currentTurn
  const own = new Map(
    [...(turn?.pending ?? []), ...(turn?.inFlight ?? [])].map(({ toolCallId: id }) => [scripted(world, id), id])
  )
  return {
    ...(step.with?.context === undefined ? {} : { context: step.with.context }),
    ...(step.with?.approvals === undefined
      ? {}
      : {
          approvals: step.with.approvals.map((answer) => ({
            ...answer,
            toolCallId: own.get(answer.toolCallId) ?? answer.toolCallId
          }))
        }),
    ...(step.with?.rewind === undefined ? {} : { rewind: step.with.rewind }),
    ...(replay === undefined
      ? {}
      : {
          replay: Object.fromEntries(
            Object.entries(replay).map(([id, verdict]) => [own.get(id) ?? id, verdictOf(verdict)])
          )
        })
  }
}

const verdictOf = (verdict: "retry" | "fail" | { readonly resolve: JsonObject }): Kernel.Verdict => {
  if (typeof verdict === "string") return verdict
  const { error, output } = verdict.resolve
  return {
    resolve:
      error === undefined
        ? { output: [{ type: "text", text: typeof output === "string" ? output : JSON.stringify(output) }] }
        : {
            error: {
              name: "Resolved",
              message: typeof error === "string" ? error : JSON.stringify(error),
              recoverable: true
            }
          }
  }
}

const layers = (world: World, seen: Seen, point: Point, store: RunStore.Shape) => {
  const watched: RunStore.Shape = {
    ...RunStore.eachRevision(store),
    create: (record, state) => Effect.andThen(store.create(record, state), stored(world, seen, point, record)),
    commit: (record, state) =>
      Effect.andThen(returned(world, point, record), store.commit(record, state)).pipe(
        Effect.andThen(stored(world, seen, point, record))
      )
  }
  const base = Layer.mergeAll(
    SkillRegistry.layer(...skills(world, seen, point)),
    ProtocolRegistry.layer(),
    MediaStore.layerMemory,
    Layer.succeed(RunStore.RunStore, watched),
    Layer.succeed(Provider.Provider, provider(world, point)),
    Layer.succeed(Limits.Limits, { ...Limits.defaults, emptyReplies: 1000 }),
    hooks(world, seen, point),
    policy(world),
    Middleware.layer(middleware(world))
  )
  return Kernel.layer.pipe(Layer.provide(base))
}

/** A result is in hand from the moment its commit begins. */
const returned = (world: World, point: Point, { events }: RunState.RunRecord): Effect.Effect<void> => {
  const [event] = events
  return event?.type === "tool_call_completed"
    ? at(point, `tool_returned:${scripted(world, event.toolCallId)}`)
    : Effect.void
}

const stored = (world: World, seen: Seen, point: Point, record: RunState.RunRecord): Effect.Effect<void> =>
  Effect.suspend(() => {
    seen.events.push(...record.events.map((event) => labelOf(world, event)))
    return point.step.crash?.afterRevision === record.revision ? die(point) : Effect.void
  })

const labelOf = (world: World, event: RunState.RunRecord["events"][number]): string =>
  "toolCallId" in event ? `${event.type}:${scripted(world, event.toolCallId)}` : event.type

/**
 * A call by the name its script gave it. A script whose last reply repeats gives its ids again, turn by turn;
 * where an earlier turn used one, the run has an id of its own for the call.
 */
const scripted = ({ scenario }: World, id: string): string => {
  const [, turn, index] = /:t(\d+)\.(\d+)$/.exec(id) ?? []
  const answers = scenario.config.script.filter(({ error }) => error === undefined)
  const reply = answers[Math.min(Number(turn), answers.length) - 1]
  return reply?.toolCalls?.[Number(index)]?.id ?? id
}

/** The same for all calls that a value names. */
const inScript = (world: World, value: unknown): unknown => {
  if (typeof value === "string") return scripted(world, value)
  if (Array.isArray(value)) return value.map((item) => inScript(world, item))
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, inScript(world, item)]))
}

// ---------------------------------------------------------------- parts

const provider = (world: World, point: Point): Provider.ProviderShape => ({
  name: "scripted",
  stream: () =>
    Stream.unwrap(
      Effect.gen(function* () {
        world.modelCalls++
        yield* at(point, "model")
        const { script } = world.scenario.config
        const reply = script[Math.min(world.position, script.length - 1)] ?? { text: "" }
        if (reply.error !== undefined) {
          world.position++
          return Stream.fail(
            new Provider.ProviderError({ provider: "scripted", reason: "server_error", detail: reply.error })
          )
        }
        const parts: Array<StreamPart.StreamPart> = []
        // A scripted reply is an answer, whatever its words: nothing at all would be none.
        const isEmpty = (reply.text ?? "") === "" && (reply.toolCalls ?? []).length === 0
        if (isEmpty || reply.text !== undefined) parts.push(StreamPart.text(isEmpty ? "done" : (reply.text ?? "")))
        for (const call of reply.toolCalls ?? []) {
          parts.push({ type: "tool-call", id: call.id, name: call.name, params: call.input })
        }
        // A reply that is only talk stands for an informational one: the run goes on after a corrective.
        const reason =
          reply.outcome === "informational"
            ? "length"
            : parts.some((part) => part.type === "tool-call")
              ? "tool-calls"
              : "stop"
        parts.push(StreamPart.finish(reason))
        return Stream.concat(
          Stream.fromIterable(parts),
          Stream.fromEffectDrain(
            Effect.uninterruptible(Effect.suspend(() => (world.position++, at(point, "model_returned"))))
          )
        )
      })
    )
})

const skills = (world: World, seen: Seen, point: Point): ReadonlyArray<Skill.AnySkill> =>
  Object.entries(world.scenario.config.tools).map(([name, tool]) =>
    Skill.dynamic(name, {
      description: name,
      inputSchema: { type: "object" },
      effects: tool.idempotent === true ? "idempotent" : "write",
      execute: (input, context) =>
        Effect.gen(function* () {
          const id = scripted(world, context.callId)
          world.executions.push(id)
          world.inputs.push({ toolCallId: id, input })
          seen.toolsRun.push(id)
          // Calls that may run at once do: each of them takes a moment.
          if ((world.scenario.config.toolConcurrency ?? 1) > 1) yield* Effect.yieldNow
          yield* at(point, `tool:${id}`)
          if (tool.error !== undefined) return yield* new Scripted({ message: tool.error })
          return tool.output ?? null
        })
    })
  )

const middleware = (world: World): Middleware.Middleware => ({
  callTool: (run, next) => {
    const broken = world.scenario.config.tools[run.call.toolName ?? ""]?.middlewareThrows
    return broken === undefined ? next(run) : Effect.die(new Error(broken))
  }
})

const policy = (world: World) => {
  const rules = world.scenario.config.policy
  if (rules === undefined) return Layer.empty
  return Policy.layer((call) => {
    const rule = rules[call.name]
    if (rule === undefined || rule.decision === "allow") return Effect.succeed(Policy.allowed)
    return Effect.succeed(
      rule.decision === "confirm" ? Policy.confirm(rule.reason ?? "") : Policy.denied(rule.reason ?? "")
    )
  })
}

const hooks = (world: World, seen: Seen, point: Point) => {
  const decide = (
    name: string,
    args: Hooks.HookArgs,
    call?: { readonly toolCallId: string; readonly toolName: string | null }
  ) =>
    Effect.gen(function* () {
      const label = call === undefined ? name : `${name}:${scripted(world, call.toolCallId)}`
      seen.hooks.push(label)
      yield* at(point, `hook:${name}`)
      if (call !== undefined) yield* at(point, `hook:${label}`)
      const entry = (world.scenario.config.hooks ?? []).find((entry) => fits(world, entry, name, args, call))
      if (entry === undefined) return undefined
      world.used.set(entry, (world.used.get(entry) ?? 0) + 1)
      if (entry.decision.throw !== undefined) return yield* new Scripted({ message: entry.decision.throw })
      return entry.decision
    })
  const simple = (name: string) => (args: Hooks.HookArgs) =>
    Effect.map(decide(name, args), (decision) => (decision === undefined ? undefined : common(decision)))
  return Hooks.layer({
    onRunStarted: simple("onRunStarted"),
    onTurnStarted: simple("onTurnStarted"),
    onTurnPrepared: (args) =>
      Effect.map(decide("onTurnPrepared", args), (decision) => ({
        ...(decision === undefined ? {} : common(decision)),
        value: { ...args.prepared, model: { id: "scripted", capabilities: ["text"] } }
      })),
    onModelStarted: simple("onModelStarted"),
    onModelRestarted: (args) => Effect.asVoid(decide("onModelRestarted", args)),
    onModelCompleted: simple("onModelCompleted"),
    onToolCallsStarted: (args) =>
      Effect.map(decide("onToolCallsStarted", args), (decision) => {
        if (decision === undefined) return undefined
        const { keep, mergeInput } = decision.value ?? {}
        if (keep !== undefined)
          return {
            ...common(decision),
            value: args.calls.filter((call) => keep.includes(scripted(world, call.toolCallId)))
          }
        if (mergeInput !== undefined) {
          return {
            ...common(decision),
            value: args.calls.map((call) => ({ ...call, input: { ...object(call.input), ...mergeInput } }))
          }
        }
        return common(decision)
      }),
    onToolCallStarted: (args) =>
      Effect.map(
        decide("onToolCallStarted", args, args.call),
        (decision): Hooks.HookResult<Hooks.Review> | undefined => {
          if (decision === undefined) return undefined
          const { mergeInput, wrapCommand, ...value } = decision.value ?? {}
          if (value.type === "skip") {
            return {
              ...common(decision),
              value: {
                type: "skip",
                result:
                  value.error === undefined
                    ? {
                        output: [
                          {
                            type: "text",
                            text: typeof value.output === "string" ? value.output : JSON.stringify(value.output)
                          }
                        ]
                      }
                    : { error: { name: "Skipped", message: value.error, recoverable: true } }
              }
            }
          }
          const input = object(args.call.input)
          if (mergeInput !== undefined)
            return { ...common(decision), value: { type: "rewrite", input: { ...input, ...mergeInput } } }
          if (wrapCommand !== undefined) {
            return {
              ...common(decision),
              value: { type: "rewrite", input: { ...input, command: `${wrapCommand} ${String(input["command"])}` } }
            }
          }
          return common(decision)
        }
      ),
    onToolCallCompleted: (args) =>
      Effect.map(decide("onToolCallCompleted", args, args.result), (decision) =>
        decision === undefined ? undefined : common(decision)
      ),
    onToolCallsCompleted: simple("onToolCallsCompleted"),
    onTurnCompleted: simple("onTurnCompleted"),
    onRunCompleted: simple("onRunCompleted"),
    onRunFailed: simple("onRunFailed")
  })
}

const common = (decision: HookEntry["decision"]): Hooks.HookResult => ({
  ...(decision.context === undefined ? {} : { context: decision.context }),
  ...(decision.control === undefined ? {} : { control: decision.control })
})

const fits = (
  world: World,
  entry: HookEntry,
  name: string,
  args: Hooks.HookArgs,
  call: Pick<Call.Call, "toolCallId" | "toolName"> | undefined
): boolean => {
  const match = entry.match ?? {}
  return (
    entry.hook === name &&
    (entry.times === undefined || (world.used.get(entry) ?? 0) < entry.times) &&
    (match.toolName === undefined || match.toolName === call?.toolName) &&
    (match.toolCallId === undefined || (call !== undefined && match.toolCallId === scripted(world, call.toolCallId))) &&
    (match.turn === undefined || match.turn === args.turn?.turn) &&
    (match.contextLacks === undefined || !args.context[match.contextLacks]) &&
    (match.contextHas === undefined || Boolean(args.context[match.contextHas]))
  )
}

const object = (value: Json): JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : {}

// ---------------------------------------------------------------- judging

type Compare = (where: string, expected: unknown, actual: unknown) => void

/** Errors of hooks, middleware and the model may have any tag: the vectors say that they failed, not how. */
const anyTag = new Set(["RunFailed", "MiddlewareError", "ModelError"])

const judge = Effect.fnUntraced(function* (
  world: World,
  store: RunStore.Shape,
  runId: string,
  expected: Expectation,
  seen: Seen,
  outcome: Exit.Exit<unknown, unknown> | undefined,
  where: string,
  compare: Compare
) {
  if (expected.events !== undefined) compare(`${where} events`, expected.events, seen.events)
  if (expected.toolsRun !== undefined) compare(`${where} toolsRun`, expected.toolsRun, seen.toolsRun)
  if (expected.hooks !== undefined) compare(`${where} hooks`, expected.hooks, seen.hooks)
  const head = Option.getOrUndefined(yield* store.head(runId))
  if (expected.revision !== undefined) compare(`${where} revision`, expected.revision, head?.revision)
  if (expected.status !== undefined && head !== undefined)
    judgeStatus(world, where, expected.status, head.status, compare)
  const actual = errorOf(outcome)
  const paused = expected.status?.["type"] === "paused" || head?.status.type === "paused"
  if (expected.error === undefined) {
    const ended =
      actual === undefined || paused || ["MaxStepsReached", "RunFinished", "RunPaused"].includes(String(actual["tag"]))
    if (outcome !== undefined && !ended) compare(`${where} error`, undefined, actual)
  } else if (anyTag.has(expected.error)) {
    compare(`${where} failed`, true, actual !== undefined && actual["tag"] !== "Interrupted")
  } else {
    compare(`${where} error`, expected.error, actual?.["tag"])
  }
  for (const [key, value] of Object.entries(expected.errorFields ?? {})) {
    const camel = key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
    compare(`${where} error.${key}`, value, inScript(world, actual?.[camel]))
  }
})

const judgeStatus = (world: World, where: string, expected: JsonObject, actual: RunState.Status, compare: Compare) => {
  for (const [key, value] of Object.entries(expected)) {
    const found: unknown = Object.entries(actual).find(([name]) => name === key)?.[1]
    if (key === "metadata") compare(`${where} status.metadata`, value, pick(value, inScript(world, found)))
    else if (key === "error") {
      const info = actual.type === "failed" ? actual.error : undefined
      if (!anyTag.has(String(value)))
        compare(`${where} status.error`, true, info?.tag === value || info?.message.includes(String(value)) === true)
    } else compare(`${where} status.${key}`, value, found)
  }
}

/** The part of `actual` that `expected` asks for. */
const pick = (expected: unknown, actual: unknown): unknown => {
  if (Array.isArray(expected) && Array.isArray(actual)) return actual.map((item, index) => pick(expected[index], item))
  if (typeof expected !== "object" || expected === null || typeof actual !== "object" || actual === null) return actual
  return Object.fromEntries(
    Object.entries(actual).flatMap(([key, value]) => {
      const wanted = Object.entries(expected).find(([name]) => name === key)
      return wanted === undefined ? [] : [[key, pick(wanted[1], value)]]
    })
  )
}

const errorOf = (outcome: Exit.Exit<unknown, unknown> | undefined): { readonly [key: string]: unknown } | undefined => {
  if (outcome === undefined || Exit.isSuccess(outcome)) return undefined
  if (Cause.hasInterruptsOnly(outcome.cause)) return { tag: "Interrupted" }
  const error: unknown = Cause.squash(outcome.cause)
  if (typeof error !== "object" || error === null) return { tag: String(error) }
  return { ...error, tag: "_tag" in error ? error._tag : "Defect" }
}

const judgeEnd = Effect.fnUntraced(function* (world: World, store: RunStore.Shape, runId: string, compare: Compare) {
  const { final, id } = world.scenario
  const state = Option.getOrUndefined(yield* store.load(runId))
  if (state === undefined) return compare(`${id} final`, "a run", undefined)
  const records = yield* Stream.runCollect(store.read(runId))
  const where = `${id} final`
  const journal = records.map((record) => [
    record.revision,
    record.op,
    record.events.map((event) => labelOf(world, event))
  ])
  const actual: { readonly [key: string]: unknown } = {
    modelCalls: world.modelCalls,
    toolExecutions: world.executions,
    toolInputs: world.inputs,
    turnsCompleted: state.turns.length,
    context: state.context,
    journal
  }
  for (const [key, value] of Object.entries(final)) {
    if (key === "status") judgeStatus(world, where, object(value), state.status, compare)
    else if (key === "openTurn") {
      const turn = state.currentTurn
      const open = {
        pending: turn?.pending.map((call) => scripted(world, call.toolCallId)),
        inFlight: turn?.inFlight.map((call) => scripted(world, call.toolCallId)),
        completed: turn?.completed.map((result) => scripted(world, result.toolCallId))
      }
      compare(`${where} openTurn`, pick(open, value), pick(value, open))
    } else compare(`${where} ${key}`, value, actual[key])
  }
})
