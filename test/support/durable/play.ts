/**
 * Plays the scenarios of durable-run.json against any RunStore.
 *
 * One scenario is one run id on one store; a step is a new process: nothing but
 * the store, the script position and the hooks' own counters survives it.
 */
import {
  Agent,
  Kernel,
  Limits,
  MediaStore,
  Middleware,
  ProtocolRegistry,
  Provider,
  RunStore,
  type RunState,
  SkillRegistry
} from "kernai"
import { Deferred, Effect, Exit, Layer, Logger, Option } from "effect"
import * as Machines from "../../../src/testing/internal/replay/virtualProcess.ts"
import { canonical } from "../canonical.ts"
import { oneByOne } from "../oneByOne.ts"
import type { JsonObject, Step, Scenario, Difference, World, Seen } from "./script.ts"
import { scripted } from "./script.ts"
import { type Point, returned, stored } from "./point.ts"
import { provider, skills, middleware, policy, hooks } from "./parts.ts"
import { judge, judgeEnd } from "./judge.ts"

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
    if (step.do === "race" || step.do === "zombie") {
      const [first, second] = yield* (step.do === "race" ? race : zombie)(world, store, runId, step)
      yield* judge(world, store, runId, step.expect, first.seen, first.exit, `${where} first`, compare)
      if (step.expect.second !== undefined) {
        yield* judge(world, store, runId, step.expect.second, second.seen, second.exit, `${where} second`, compare)
      }
    } else {
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

/** A process of its own: what it is killed in the middle of never goes on. */
const boot = (
  world: World,
  runId: string,
  step: Step,
  seen: Seen,
  store: RunStore.RunStoreShape,
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
const outside = (store: RunStore.RunStoreShape, machine: Machines.Machine): RunStore.RunStoreShape => ({
  ...store,
  append: (records, state) => machine.ask(store.append(records, state)),
  load: (runId) => machine.ask(store.load(runId)),
  head: (runId) => machine.ask(store.head(runId))
})

/** One process: it runs to its end, dies, or is interrupted at a point. */
const alone = Effect.fnUntraced(function* (
  world: World,
  store: RunStore.RunStoreShape,
  runId: string,
  step: Step,
  seen: Seen
) {
  const process = boot(world, runId, step, seen, store)
  yield* process.run
  if (step.interrupt !== undefined && process.exit() === undefined) {
    process.fiber.interruptUnsafe()
    yield* process.goOn
  }
  return process.exit()
})

/** Two workers that have read the same head before either commits. */
const race = Effect.fnUntraced(function* (world: World, store: RunStore.RunStoreShape, runId: string, step: Step) {
  const first = nothing()
  const second = nothing()
  const loaded = yield* store.load(runId)
  const stale: RunStore.RunStoreShape = { ...store, load: () => Effect.succeed(loaded), head: () => Effect.succeedNone }
  const one = yield* alone(world, store, runId, { ...step, do: "resume" }, first)
  const two = yield* alone(world, stale, runId, { ...step, do: "resume" }, second)
  return [
    { seen: first, exit: one },
    { seen: second, exit: two }
  ] as const
})

/** A worker that sleeps inside a call until another has gone on with its run. */
const zombie = Effect.fnUntraced(function* (world: World, store: RunStore.RunStoreShape, runId: string, step: Step) {
  const first = nothing()
  const second = nothing()
  const asleep = boot(world, runId, { ...step, do: "run", interrupt: `tool:${step.tool}` }, first, store)
  yield* asleep.run
  const two = yield* alone(world, store, runId, { ...step, do: "resume" }, second)
  yield* asleep.goOn
  return [
    { seen: first, exit: asleep.exit() },
    { seen: second, exit: two }
  ] as const
})

const start = (
  world: World,
  runId: string,
  step: Step,
  seen: Seen,
  point: Point,
  store: RunStore.RunStoreShape
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
    [...(turn?.pending ?? []), ...(turn?.inFlight ?? [])].map(({ callId: id }) => [scripted(world, id), id])
  )
  return {
    ...(step.with?.context === undefined ? {} : { context: step.with.context }),
    ...(step.with?.approvals === undefined
      ? {}
      : {
          answers: step.with.approvals.map(({ toolCallId, ...answer }) => ({
            ...answer,
            callId: own.get(toolCallId) ?? toolCallId
          }))
        }),
    ...(step.with?.rewind === undefined ? {} : { rewind: step.with.rewind }),
    ...(replay === undefined
      ? {}
      : {
          recover: Object.fromEntries(
            Object.entries(replay).map(([id, verdict]) => [own.get(id) ?? id, verdictOf(verdict)])
          )
        })
  }
}

const verdictOf = (verdict: "retry" | "fail" | { readonly resolve: JsonObject }): Kernel.Recovery => {
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

const layers = (world: World, seen: Seen, point: Point, store: RunStore.RunStoreShape) => {
  const watched = oneByOne(store, (record, state) =>
    returned(world, point, record).pipe(
      Effect.andThen(store.append([record], state)),
      Effect.andThen(stored(world, seen, point, record))
    )
  )
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
  return Kernel.layerNoProvider.pipe(Layer.provide(base))
}
