import { assert, describe, it } from "@effect/vitest"
import {
  Cause,
  Clock,
  Deferred,
  Duration,
  Effect,
  Exit,
  Fiber,
  identity,
  Layer,
  Logger,
  Option,
  Queue,
  Schema,
  Stream
} from "effect"
import { TestClock } from "effect/testing"
import type { RunEvent } from "kernai"
import {
  Agent,
  Hooks,
  Kernel,
  KernelError,
  Limits,
  MediaStore,
  Policy,
  PromptPipeline,
  ProtocolRegistry,
  Provider,
  Recorder,
  RunState,
  RunStore,
  Skill,
  SkillRegistry
} from "kernai"
import { MockProvider } from "kernai/testing"
import { oneByOne } from "../support/oneByOne.ts"

const agent = Agent.make({ name: "agent", instructions: "", model: "scripted", skills: "all", maxSteps: 5 })

const look = '<block type="command" name="look">{}</block>'
const pay = '<block type="command" name="pay">{}</block>'
const act = `${look}${pay}`
const replies = [act, '<block type="final">done</block>'] as const

/** What was stored before each thing that others can see. */
interface World {
  /** How many revisions each transaction had. */
  readonly transactions: Array<number>
  readonly moments: Array<readonly [what: string, last: string | undefined]>
}

const nameOf = ({ events, op }: RunState.RunRecord): string => events.at(-1)?.type ?? op

/** A memory store that is watched. */
const watched = (world: World): Effect.Effect<RunStore.RunStoreShape> =>
  Effect.map(RunStore.makeMemory, (store) => ({
    ...store,
    append: (records, state) =>
      Effect.suspend(() => {
        if (records[0].revision > 1) world.transactions.push(records.length)
        return store.append(records, state)
      })
  }))

const skill = (world: World, store: RunStore.RunStoreShape, name: string, effects: "read" | "write") =>
  Skill.dynamic(name, {
    description: name,
    inputSchema: { type: "object" },
    effects,
    execute: () => Effect.as(see(world, store, name), "ok")
  })

/** Notes the last record that is stored at this moment. */
const see = (world: World, store: RunStore.RunStoreShape, what: string) =>
  Effect.map(Stream.runCollect(Stream.orDie(store.read("run"))), (records) => {
    const last = records.at(-1)
    world.moments.push([what, last === undefined ? undefined : nameOf(last)])
  })

const kernelOn = (
  world: World,
  store: RunStore.RunStoreShape,
  protocols: Layer.Layer<ProtocolRegistry.ProtocolRegistry> = Layer.orDie(ProtocolRegistry.layer())
) =>
  Kernel.layerNoProvider.pipe(
    Layer.provide([
      Layer.orDie(SkillRegistry.layer(skill(world, store, "look", "read"), skill(world, store, "pay", "write"))),
      protocols,
      MediaStore.layerMemory,
      Layer.succeed(RunStore.RunStore, store)
    ])
  )

const watchedProvider = (world: World, store: RunStore.RunStoreShape): Provider.ProviderShape => {
  const inner = MockProvider.make(...replies)
  return {
    ...inner,
    stream: (request) => Stream.unwrap(Effect.as(see(world, store, "model"), inner.stream(request)))
  }
}

const play = Effect.fnUntraced(function* (
  hooks: Hooks.Hooks = {},
  change: (store: RunStore.RunStoreShape) => RunStore.RunStoreShape = identity
) {
  const world: World = { transactions: [], moments: [] }
  const store = change(yield* watched(world))
  const events: ReadonlyArray<RunEvent.RunEvent> = yield* Kernel.stream(agent, "go", {
    runId: "run",
    provider: watchedProvider(world, store)
  }).pipe(Stream.runCollect, Effect.provide(Layer.merge(kernelOn(world, store), Hooks.layer(hooks))))
  const journal = yield* Stream.runCollect(store.read("run"))
  return { ...world, events, journal, state: yield* store.load("run") }
})

/** A value without what differs from process to process. */
const still = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (key, field) => (["at", "createdAt", "updatedAt", "workerId"].includes(key) ? 0 : field))
  )

describe("a store that appends the records of a step at once", () => {
  it.effect("keeps the same journal and state, and the run emits the same events in the same order (R-23)", () =>
    Effect.gen(function* () {
      const [apart, grouped] = [yield* play({}, (store) => oneByOne(store)), yield* play()]
      assert.deepStrictEqual(still(grouped.journal), still(apart.journal))
      assert.deepStrictEqual(still(grouped.state), still(apart.state))
      assert.deepStrictEqual(still(grouped.events), still(apart.events))
      assert.isTrue(apart.transactions.every((count) => count === 1))
    }).pipe(Effect.scoped)
  )

  it.effect("publishes events in causal order, each with its turn (AC-20)", () =>
    Effect.gen(function* () {
      const { events } = yield* play()
      const isWhole = ({ type }: RunEvent.RunEvent) => !type.startsWith("block_")
      const asked = ["turn_started", "turn_prepared", "model_started", "messages_sent", "model_completed"]
      const called = ["skill_execute", "skill_result", "tool_call_completed"]
      const first = ["run_started", ...asked, "llm_response", "blocks_parsed", "tool_calls_started"]
        .concat("tool_call_started", "tool_call_started", called, called)
        .concat("tool_calls_completed", "turn_completed")
      const second = [...asked, "llm_response", "blocks_parsed", "turn_completed", "final", "result", "run_completed"]
      assert.deepStrictEqual(
        events.filter(isWhole).map(({ step, type }) => `${step} ${type}`),
        [...first.map((type) => `0 ${type}`), ...second.map((type) => `1 ${type}`)]
      )
    }).pipe(Effect.scoped)
  )

  it.effect("stores the context set by a gating hook in the record of that phase (DR-8)", () =>
    Effect.gen(function* () {
      const { journal } = yield* play({ onTurnPrepared: () => Effect.succeed({ context: { seen: true } }) })
      assert.deepStrictEqual(RunState.fold(journal)?.context, { seen: true })
      assert.deepStrictEqual(journal.find((record) => nameOf(record) === "turn_prepared")?.delta, {
        context: { seen: true }
      })
    }).pipe(Effect.scoped)
  )

  it.effect(
    "has stored everything before the model is called and before a call with effects is entered (R-1, R-2)",
    () =>
      Effect.gen(function* () {
        const { moments } = yield* play()
        assert.deepStrictEqual(moments, [
          ["model", "model_started"],
          // What changes nothing is stored with its result.
          ["look", "model_started"],
          ["pay", "launch"],
          ["model", "model_started"]
        ])
      }).pipe(Effect.scoped)
  )

  it.effect("needs far fewer transactions than revisions", () =>
    Effect.gen(function* () {
      const { journal, transactions } = yield* play()
      const sum = transactions.reduce((sum, count) => sum + count, 0)
      assert.strictEqual(sum, journal.length - 1)
      assert.isAtMost(transactions.length, 6)
    }).pipe(Effect.scoped)
  )

  it.effect("has stored the records a hook is asked about (DR-8)", () =>
    Effect.gen(function* () {
      const keys: Array<string> = []
      const { transactions } = yield* play({
        onToolCallCompleted: ({ commitKey }) => Effect.sync(() => void keys.push(commitKey)),
        onTurnCompleted: ({ commitKey }) => Effect.sync(() => void keys.push(commitKey))
      })
      const ends = transactions.reduce<Array<number>>((ends, count) => [...ends, (ends.at(-1) ?? 1) + count], [])
      assert.isAbove(keys.length, 3)
      for (const key of keys) assert.include(ends, Number(key.split(":")[1]))
    }).pipe(Effect.scoped)
  )

  it.effect("has stored the result of an unrepeatable call before anything else happens (R-2)", () =>
    Effect.gen(function* () {
      const world: World = { transactions: [], moments: [] }
      const store = yield* watched(world)
      const provider = MockProvider.make(...replies)
      // The second turn never gets its instructions.
      let turns = 0
      const once = { ...agent, instructions: Effect.suspend(() => (++turns === 1 ? Effect.succeed("") : Effect.never)) }
      const fiber = yield* Kernel.run(once, "go", { runId: "run", provider }).pipe(
        Effect.provide(kernelOn(world, store)),
        Effect.forkChild({ startImmediately: true })
      )
      while (turns < 2) yield* Effect.yieldNow
      const stored = (yield* Stream.runCollect(store.read("run"))).map(nameOf)
      assert.deepStrictEqual(stored.slice(-3), ["tool_calls_completed", "turn_completed", "turn_started"])
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual((yield* Stream.runCollect(store.read("run"))).map(nameOf), stored)
    }).pipe(Effect.scoped)
  )

  it.effect("receives pending records when the run is interrupted, and the run continues from there (DR-7)", () =>
    Effect.gen(function* () {
      const world: World = { transactions: [], moments: [] }
      const store = yield* watched(world)
      const kernel = kernelOn(world, store)
      const provider = MockProvider.make(look, '<block type="final">done</block>')
      let turns = 0
      const stuck = Layer.effect(
        ProtocolRegistry.ProtocolRegistry,
        Effect.map(ProtocolRegistry.ProtocolRegistry, (registry) => ({
          ...registry,
          all: Effect.suspend(() => (++turns === 1 ? registry.all : Effect.never))
        }))
      ).pipe(Layer.provide(Layer.orDie(ProtocolRegistry.layer())))
      const fiber = yield* Kernel.run(agent, "go", { runId: "run", provider }).pipe(
        Effect.provide(kernelOn(world, store, stuck)),
        Effect.forkChild({ startImmediately: true })
      )
      while (turns < 2) yield* Effect.yieldNow
      const names = Effect.map(Stream.runCollect(store.read("run")), (records) => records.map(nameOf))
      assert.strictEqual((yield* names).at(-1), "model_started")
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual((yield* names).slice(-5), [
        "launch",
        "tool_call_completed",
        "tool_calls_completed",
        "turn_completed",
        "turn_started"
      ])
      const result = yield* Kernel.resume(agent, "run", { provider }).pipe(Effect.provide(kernel))
      assert.strictEqual(result.text, "done")
      assert.deepStrictEqual(
        world.moments.map(([what]) => what),
        ["look"]
      )
    }).pipe(Effect.scoped)
  )

  it.effect("stops the run before it does anything more when another worker took it over (R-5)", () =>
    Effect.gen(function* () {
      const world: World = { transactions: [], moments: [] }
      const store = yield* watched(world)
      let isLost = false
      const lost: RunStore.RunStoreShape = {
        ...store,
        append: (records, state) =>
          isLost
            ? Effect.fail(
                new RunStore.ConcurrentAppendError({
                  runId: "run",
                  expectedSeq: records[0].revision - 1,
                  actualSeq: 99
                })
              )
            : store.append(records, state)
      }
      const provider: Provider.ProviderShape = {
        name: "mock",
        stream: (request) => {
          isLost = true
          return MockProvider.make(pay).stream(request)
        }
      }
      const exit = yield* Kernel.run(agent, "go", { runId: "run", provider }).pipe(
        Effect.provide(kernelOn(world, lost)),
        Effect.flip,
        Effect.exit
      )
      assert.isTrue(Exit.isSuccess(exit) && exit.value._tag === "ConcurrentAppendError")
      assert.deepStrictEqual(world.moments, [])
    }).pipe(Effect.scoped)
  )

  it.effect("fails the run with the store's error, even when onRunFailed runs in between", () =>
    Effect.gen(function* () {
      const broken = new RunStore.StoreError({ operation: "append", reason: "limit_exceeded", detail: "full" })
      const world: World = { transactions: [], moments: [] }
      const store = yield* watched(world)
      let asked = 0
      const failing: RunStore.RunStoreShape = {
        ...store,
        append: (records, state) => (state.revision === 1 ? store.append(records, state) : Effect.fail(broken))
      }
      const hooks: Hooks.Hooks = {
        onRunFailed: () =>
          Effect.sync(() => {
            asked++
          })
      }
      const pipeline = { build: () => new KernelError.TemplateError({ line: 1, detail: "no" }) }
      const error = yield* Kernel.run(agent, "go", { runId: "run", provider: MockProvider.make("x") }).pipe(
        Effect.flip,
        Effect.provide(Layer.mergeAll(kernelOn(world, failing), Hooks.layer(hooks))),
        Effect.provideService(PromptPipeline.PromptPipeline, pipeline)
      )
      assert.deepStrictEqual(error, broken)
      assert.strictEqual(asked, 0)
    })
  )
})

/** The record by which another worker takes a run up. */
const takenUp = (state: RunState.RunState): RunState.RunRecord => ({
  runId: "run",
  revision: state.revision + 1,
  op: "resume",
  events: [],
  delta: {},
  createdAt: 0,
  workerId: "other"
})

/**
 * Runs on a store that takes a revision, does not say so, and is asked again, while another goes on from it: the worker
 * was taken for dead.
 */
const overtaken = Effect.fnUntraced(function* (revision: number) {
  const world: World = { transactions: [], moments: [] }
  const store = yield* watched(world)
  const lost = new RunStore.StoreError({ operation: "append", reason: "unavailable", detail: "no answer" })
  let isLost = false
  const late: RunStore.RunStoreShape = {
    ...store,
    append: (records, state) => {
      if (isLost || state.revision !== revision) return store.append(records, state)
      isLost = true
      const taken = takenUp(state)
      return store
        .append(records, state)
        .pipe(Effect.andThen(store.append([taken], RunState.advance(state, taken))), Effect.andThen(Effect.fail(lost)))
    }
  }
  const told: Array<string> = []
  const fiber = yield* Kernel.stream(agent, "go", { runId: "run", provider: watchedProvider(world, late) }).pipe(
    Stream.runForEach((event) => Effect.sync(() => told.push(event.type))),
    Effect.flip,
    Effect.provide(kernelOn(world, late)),
    Effect.forkChild({ startImmediately: true })
  )
  yield* TestClock.adjust("1 second")
  return { ...world, told, error: yield* Fiber.join(fiber) }
})

describe("a store that commits records without acknowledging them, and is asked again", () => {
  it.effect("stops the run whose lease was taken over meanwhile, without publishing the records (R-5, R-6)", () =>
    Effect.gen(function* () {
      const { error, moments, told } = yield* overtaken(4)
      assert.deepStrictEqual(error, new RunStore.ConcurrentAppendError({ runId: "run", expectedSeq: 3, actualSeq: 5 }))
      assert.deepStrictEqual(told, ["run_started"])
      assert.deepStrictEqual(moments, [])
    }).pipe(Effect.scoped)
  )
})

describe("the memory store itself", () => {
  it.effect("stops a run that another worker took over, before it does anything more (R-5)", () =>
    Effect.gen(function* () {
      const world: World = { transactions: [], moments: [] }
      const store = yield* RunStore.RunStore
      const takeOver = Effect.gen(function* () {
        const state = Option.getOrThrow(yield* store.load("run"))
        const taken = takenUp(state)
        yield* store.append([taken], RunState.advance(state, taken))
        return taken.revision
      }).pipe(Effect.orDie)
      let actualSeq = 0
      const provider: Provider.ProviderShape = {
        name: "mock",
        stream: (request) =>
          Stream.unwrap(
            Effect.map(takeOver, (revision) => {
              actualSeq = revision
              return MockProvider.make(pay).stream(request)
            })
          )
      }
      const told: Array<number> = []
      const error = yield* Kernel.stream(agent, "go", { runId: "run", provider }).pipe(
        Stream.runForEach((event) => Effect.sync(() => "revision" in event && told.push(event.revision))),
        Effect.flip,
        Effect.provide(kernelOn(world, store))
      )
      assert.deepStrictEqual(
        error,
        new RunStore.ConcurrentAppendError({ runId: "run", expectedSeq: actualSeq - 1, actualSeq })
      )
      assert.strictEqual(Math.max(...told), actualSeq - 1)
      assert.deepStrictEqual(world.moments, [])
    }).pipe(Effect.provide(RunStore.layerMemory))
  )

  it.effect("stamps records committed at once with one time", () =>
    Effect.gen(function* () {
      const world: World = { transactions: [], moments: [] }
      const store = yield* watched(world)
      let millis = 0
      const ticking: Clock.Clock = {
        ...(yield* Clock.Clock),
        currentTimeMillisUnsafe: () => ++millis
      }
      yield* Kernel.run(agent, "go", { runId: "run", provider: MockProvider.make(...replies) }).pipe(
        Effect.provide(kernelOn(world, store)),
        Effect.provideService(Clock.Clock, ticking)
      )
      const journal = yield* Stream.runCollect(store.read("run"))
      let start = 1
      const times = world.transactions.map((length) => {
        const together = journal.slice(start, (start += length))
        return new Set(together.map(({ createdAt }) => createdAt)).size
      })
      assert.strictEqual(start, journal.length)
      assert.deepStrictEqual(new Set(times), new Set([1]))
    }).pipe(Effect.scoped)
  )
})

describe("a store that throws", () => {
  it.effect("fails the run with a typed error, and is asked once more to store pending records (R-6, DR-7)", () =>
    Effect.gen(function* () {
      const world: World = { transactions: [], moments: [] }
      const store = yield* watched(world)
      const defect = new Error("no handle")
      let asked = 0
      const throwing: RunStore.RunStoreShape = {
        ...store,
        append: (records, state) => {
          if (++asked === 4) throw defect
          return store.append(records, state)
        }
      }
      const exit = yield* Kernel.run(agent, "go", { runId: "run", provider: MockProvider.make(...replies) }).pipe(
        Effect.provide(kernelOn(world, throwing)),
        Effect.exit
      )
      assert.isTrue(Exit.isFailure(exit) && !Cause.hasDies(exit.cause))
      // A call that is not repeated was made: what it gave is not lost.
      assert.deepStrictEqual((yield* Stream.runCollect(store.read("run"))).map(nameOf).slice(-2), [
        "launch",
        "tool_call_completed"
      ])
    }).pipe(Effect.scoped)
  )
})

describe("a call that changes nothing", () => {
  /** A run whose only call waits until it is told to go on, on a store that is as slow or refuses. */
  const looking = Effect.fnUntraced(function* (append: Effect.Effect<void, RunStore.ConcurrentAppendError>) {
    const seen: Array<string> = []
    const go = yield* Deferred.make<void>()
    const store = yield* RunStore.makeMemory
    const slow: RunStore.RunStoreShape = {
      ...store,
      append: (records, state) =>
        Effect.andThen(records.some(({ op }) => op === "launch") ? append : Effect.void, store.append(records, state))
    }
    const look = Skill.make("look", {
      description: "Looks",
      input: Schema.Struct({}),
      effects: "read",
      execute: () =>
        Effect.sync(() => seen.push("entered")).pipe(
          Effect.andThen(Deferred.await(go)),
          Effect.onInterrupt(() => Effect.sync(() => seen.push("interrupted"))),
          Effect.as("ok")
        )
    })
    const provider = MockProvider.make('<block type="command" name="look">{}</block>', "<final>done</final>")
    const kernel = Kernel.layerNoProvider.pipe(
      Layer.provide([
        SkillRegistry.layer(look),
        ProtocolRegistry.layer(),
        MediaStore.layerMemory,
        Layer.succeed(RunStore.RunStore, slow)
      ])
    )
    const fiber = yield* Kernel.stream(agent, "go", { runId: "run", provider }).pipe(
      Stream.runForEach((event) => Effect.sync(() => event.type.startsWith("tool_call_") && seen.push(event.type))),
      Effect.flip,
      Effect.provide(kernel),
      Effect.forkChild({ startImmediately: true })
    )
    return { fiber, go, seen }
  })

  it.effect("is entered while its launch is being stored, and emits its start once that is stored", () =>
    Effect.gen(function* () {
      const { go, seen } = yield* looking(Effect.sleep("1 second"))
      yield* TestClock.adjust("999 millis")
      assert.deepStrictEqual(seen, ["entered"])
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(seen, ["entered", "tool_call_started"])
      yield* Deferred.succeed(go, undefined)
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(seen, ["entered", "tool_call_started", "tool_call_completed"])
    })
  )

  it.effect("is interrupted when another worker has the run (R-5)", () =>
    Effect.gen(function* () {
      const lost = new RunStore.ConcurrentAppendError({ runId: "run", expectedSeq: 3, actualSeq: 4 })
      const { fiber, seen } = yield* looking(Effect.andThen(Effect.sleep("1 second"), Effect.fail(lost)))
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* Fiber.join(fiber), lost)
      assert.deepStrictEqual(seen, ["entered", "interrupted"])
    })
  )
})

describe("a store that has all records before foreign code runs", () => {
  const run = (world: World, store: RunStore.RunStoreShape, options: Kernel.RunOptions = {}) =>
    Kernel.run(agent, "go", { runId: "run", provider: watchedProvider(world, store), ...options }).pipe(
      Effect.provide(kernelOn(world, store))
    )

  it.effect("has them when the host's own pipeline builds the prompt (AC-10)", () =>
    Effect.gen(function* () {
      const world: World = { transactions: [], moments: [] }
      const store = yield* watched(world)
      const pipeline: PromptPipeline.PromptPipelineShape = {
        build: (context) => Effect.andThen(see(world, store, "pipeline"), PromptPipeline.simple.build(context))
      }
      yield* Effect.provideService(run(world, store), PromptPipeline.PromptPipeline, pipeline)
      assert.deepStrictEqual(
        world.moments.filter(([what]) => what === "pipeline"),
        [
          ["pipeline", "turn_started"],
          ["pipeline", "turn_started"]
        ]
      )
    }).pipe(Effect.scoped)
  )

  it.effect(
    "has them when tokens are counted, a policy is asked, or the run waits after an empty reply (R-14, AC-19)",
    () =>
      Effect.gen(function* () {
        const world: World = { transactions: [], moments: [] }
        const store = yield* watched(world)
        const window = { ...agent, contextWindow: 100_000 }
        const count = () => Effect.as(see(world, store, "count"), 1)
        const policy: Policy.PolicyShape = {
          authorize: () => Effect.as(see(world, store, "policy"), Policy.allowed)
        }
        const fiber = yield* Kernel.run(window, "go", {
          runId: "run",
          provider: MockProvider.make(look, "", replies[1])
        }).pipe(
          Effect.provide([
            kernelOn(world, store),
            Layer.succeed(PromptPipeline.TokenCounter, count),
            Layer.succeed(Policy.Policy, policy)
          ]),
          Effect.forkChild({ startImmediately: true })
        )
        yield* TestClock.adjust(249)
        yield* see(world, store, "wait")
        yield* TestClock.adjust(1)
        yield* Fiber.join(fiber)
        const lastAt = (moment: string) => [
          ...new Set(world.moments.flatMap(([what, last]) => (what === moment ? [last] : [])))
        ]
        assert.deepStrictEqual(
          [lastAt("count"), lastAt("policy"), lastAt("wait")],
          [["turn_started"], ["model_completed"], ["turn_completed"]]
        )
      }).pipe(Effect.scoped)
  )

  it.effect("has them when a policy is asked about the arguments a person changed (AC-19)", () =>
    Effect.gen(function* () {
      const world: World = { transactions: [], moments: [] }
      const store = yield* watched(world)
      const provider = MockProvider.make(...replies)
      const under = (authorize: Policy.PolicyShape["authorize"]) =>
        Layer.merge(kernelOn(world, store), Layer.succeed(Policy.Policy, { authorize }))
      yield* Kernel.run(agent, "go", { runId: "run", provider }).pipe(
        Effect.flip,
        Effect.provide(under(() => Effect.succeed(Policy.confirm("it costs"))))
      )
      const approvals = ["run:t1.0", "run:t1.1"].map((callId) => ({ callId, approved: true, input: { at: 1 } }))
      yield* Kernel.resume(agent, "run", { provider, answers: approvals }).pipe(
        Effect.provide(under(() => Effect.as(see(world, store, "policy"), Policy.allowed)))
      )
      assert.deepStrictEqual(
        world.moments.flatMap(([what, last]) => (what === "policy" ? [last] : [])),
        ["resume", "tool_call_started"]
      )
    }).pipe(Effect.scoped)
  )

  it.effect("keeps steering input queued when the store is gone", () =>
    Effect.gen(function* () {
      const world: World = { transactions: [], moments: [] }
      const store = yield* watched(world)
      const gone = new RunStore.StoreError({ operation: "append", reason: "corrupt", detail: "gone" })
      const steering = yield* Queue.unbounded<Kernel.Input>()
      const isAsked = () => world.moments.some(([what]) => what === "model")
      const leaving: RunStore.RunStoreShape = {
        ...store,
        append: (records, state) => (isAsked() ? Effect.fail(gone) : store.append(records, state))
      }
      const provider = MockProvider.make('<block type="final">done</block>')
      const talking: Provider.ProviderShape = {
        ...provider,
        stream: (request) =>
          Stream.concat(
            Stream.fromEffectDrain(Effect.andThen(see(world, store, "model"), Queue.offer(steering, "and this"))),
            provider.stream(request)
          )
      }
      const error = yield* Effect.flip(run(world, leaving, { provider: talking, steering }))
      assert.deepStrictEqual(error, gone)
      assert.strictEqual(yield* Queue.size(steering), 1)
    }).pipe(Effect.scoped)
  )

  it.effect("keeps steering input queued when it is unknown whether it was stored", () =>
    Effect.gen(function* () {
      const world: World = { transactions: [], moments: [] }
      const store = yield* watched(world)
      const steering = yield* Queue.unbounded<Kernel.Input>()
      const full = new RunStore.StoreError({ operation: "append", reason: "limit_exceeded", detail: "full" })
      let isFull = false
      const failing: RunStore.RunStoreShape = {
        ...store,
        read: (runId, revision) => (isFull ? Stream.die("unreadable") : store.read(runId, revision)),
        append: (records, state) => {
          isFull ||= records.some(({ events }) => events.some((event) => "steering" in event))
          return isFull ? Effect.fail(full) : store.append(records, state)
        }
      }
      const inner = MockProvider.make('<block type="final">done</block>')
      const provider: Provider.ProviderShape = {
        ...inner,
        stream: (request) =>
          Stream.concat(Stream.fromEffectDrain(Queue.offer(steering, "and this")), inner.stream(request))
      }
      assert.deepStrictEqual(yield* Effect.flip(run(world, failing, { provider, steering })), full)
      assert.strictEqual(yield* Queue.size(steering), 1)
    }).pipe(Effect.scoped)
  )

  it.effect("stores a long batch in order", () =>
    Effect.gen(function* () {
      const world: World = { transactions: [], moments: [] }
      const store = yield* watched(world)
      const provider = MockProvider.make(look.repeat(94), '<block type="final">done</block>')
      const events = yield* Kernel.stream(agent, "go", { runId: "run", provider }).pipe(
        Stream.runCollect,
        Effect.provide(kernelOn(world, store))
      )
      assert.isAtMost(Math.max(...world.transactions), 300)
      const told = events.flatMap((event) => ("revision" in event ? [event.revision] : []))
      assert.deepStrictEqual(
        told,
        told.toSorted((a, b) => a - b)
      )
      const journal = yield* Stream.runCollect(store.read("run"))
      assert.deepStrictEqual(
        journal.map(({ revision }) => revision),
        journal.map((_, index) => index + 1)
      )
      assert.strictEqual(journal.flatMap((record) => record.events).length, told.length)
    }).pipe(Effect.scoped)
  )

  it.effect("with a bug is not asked again (DR-6)", () =>
    Effect.gen(function* () {
      const world: World = { transactions: [], moments: [] }
      const store = yield* watched(world)
      let asked = 0
      const buggy: RunStore.RunStoreShape = {
        ...store,
        append: (records, state) =>
          state.revision > 1 ? Effect.die("a bug with Bearer SECRET-0123") : store.append(records, state)
      }
      const lines: Array<string> = []
      const logger = Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))])
      const hooks: Hooks.Hooks = { onRunFailed: () => Effect.sync(() => void asked++) }
      const error = yield* Effect.flip(Effect.provide(run(world, buggy), [Hooks.layer(hooks), logger]))
      assert.isTrue(error._tag === "StoreError" && error.reason === "invalid")
      assert.match(lines.join("\n"), /a store failed unexpectedly.*a bug with <redacted>/)
      assert.strictEqual(asked, 0)
      assert.deepStrictEqual(world.transactions, [])
    }).pipe(Effect.scoped)
  )
})

/** What is told of a run that is interrupted half a second after it began, and ends within a time. */
const toldOfInterrupted = Effect.fnUntraced(function* (
  world: World,
  store: RunStore.RunStoreShape,
  within: Duration.Input
) {
  const told: Array<RunEvent.RunEvent> = []
  const running = yield* Kernel.run(agent, "go", { runId: "run", provider: watchedProvider(world, store) }).pipe(
    Effect.provideService(Recorder.Recorder, { record: (event) => told.push(event) }),
    Effect.provide(kernelOn(world, store)),
    Effect.forkChild
  )
  yield* TestClock.adjust("500 millis")
  const interrupted = yield* Effect.forkChild(Fiber.interrupt(running), { startImmediately: true })
  yield* TestClock.adjust(within)
  yield* Fiber.join(interrupted)
  return told
})

describe("a record that the store has accepted", () => {
  it.effect("is published, even if it starts a run that was interrupted meanwhile (R-23)", () =>
    Effect.gen(function* () {
      const world: World = { transactions: [], moments: [] }
      const store = yield* watched(world)
      const slow: RunStore.RunStoreShape = {
        ...store,
        append: (records, state) => Effect.andThen(store.append(records, state), Effect.sleep("1 second"))
      }
      const told = yield* toldOfInterrupted(world, slow, "500 millis")
      assert.deepStrictEqual(
        told.map(({ type }) => type),
        ["run_started"]
      )
      assert.deepStrictEqual(world.moments, [])
    }).pipe(Effect.scoped)
  )

  for (const [before, hooks, whole] of [
    ["the model is asked", {}, ["run_started", "turn_started", "turn_prepared", "model_started"]],
    ["a hook is heard", { onTurnPrepared: () => Effect.succeed({}) }, ["run_started", "turn_started"]]
  ] as const) {
    it.effect(`is published before ${before}, even if the run was interrupted (DR-7, R-23)`, () =>
      Effect.gen(function* () {
        const world: World = { transactions: [], moments: [] }
        const store = yield* watched(world)
        const slow: RunStore.RunStoreShape = {
          ...store,
          append: (records, state) =>
            Effect.andThen(
              store.append(records, state),
              records[0].revision > 1 ? Effect.sleep("1 second") : Effect.void
            )
        }
        const events = yield* Effect.provide(toldOfInterrupted(world, slow, "10 seconds"), Hooks.layer(hooks))
        const told = events.flatMap((event) => ("revision" in event ? [event.type] : []))
        assert.deepStrictEqual(told, [...whole])
        assert.deepStrictEqual((yield* Stream.runCollect(store.read("run"))).map(nameOf), told)
        assert.deepStrictEqual(world.moments, [])
      }).pipe(Effect.scoped)
    )
  }
})

describe("a store that does not respond", () => {
  const play = Effect.fnUntraced(function* (hanging: number, stored: boolean) {
    const world: World = { transactions: [], moments: [] }
    const store = yield* watched(world)
    let appends = 0
    const slow: RunStore.RunStoreShape = {
      ...store,
      append: (records, state) =>
        Effect.suspend(() => {
          if (records[0].revision === 1) return store.append(records, state)
          const hangs = ++appends <= hanging
          const kept = hangs && !stored ? Effect.void : store.append(records, state)
          return hangs ? Effect.uninterruptible(Effect.andThen(kept, Effect.never)) : kept
        })
    }
    const fiber = yield* Kernel.run(agent, "go", { runId: "run", provider: MockProvider.make(...replies) }).pipe(
      Effect.provide(kernelOn(world, slow)),
      Effect.forkChild({ startImmediately: true })
    )
    return { fiber, appends: () => appends }
  })

  it.effect("is asked once more for the same record after appendTimeout, whether it stored it or not (R-6)", () =>
    Effect.gen(function* () {
      for (const stored of [true, false]) {
        const { fiber } = yield* play(1, stored)
        yield* TestClock.adjust(Duration.toMillis(Limits.defaults.appendTimeout) + 50)
        assert.strictEqual((yield* Fiber.join(fiber)).text, "done")
      }
    }).pipe(Effect.scoped)
  )

  it.effect("blocks no caller when it does not return the head either (R-6, R-16)", () =>
    Effect.gen(function* () {
      const world: World = { transactions: [], moments: [] }
      const store = yield* watched(world)
      let appends = 0
      const silent: RunStore.RunStoreShape = {
        ...store,
        append: (records, state) =>
          Effect.suspend(() => (appends++ === 0 ? Effect.never : store.append(records, state))),
        head: () => Effect.never
      }
      const fiber = yield* Kernel.run(agent, "go", { runId: "run", provider: MockProvider.make(...replies) }).pipe(
        Effect.provide(kernelOn(world, silent)),
        Effect.forkChild({ startImmediately: true })
      )
      yield* TestClock.adjust(3 * Duration.toMillis(Limits.defaults.appendTimeout) + 300)
      const error = yield* Effect.flip(Fiber.join(fiber))
      assert.isTrue(error._tag === "StoreError" && error.reason === "timeout")
    }).pipe(Effect.scoped)
  )

  it.effect("is interrupted at its timeout, and not asked again before it has stopped (R-15)", () =>
    Effect.gen(function* () {
      const world: World = { transactions: [], moments: [] }
      const store = yield* watched(world)
      const seen: Array<string> = []
      const hanging: RunStore.RunStoreShape = {
        ...store,
        append: () =>
          Effect.suspend(() => {
            seen.push("asked")
            return Effect.onInterrupt(Effect.never, () => Effect.sync(() => seen.push("stopped")))
          })
      }
      const fiber = yield* Kernel.run(agent, "go", { runId: "run", provider: MockProvider.make(...replies) }).pipe(
        Effect.provide(kernelOn(world, hanging)),
        Effect.forkChild({ startImmediately: true })
      )
      yield* TestClock.adjust(3 * Duration.toMillis(Limits.defaults.appendTimeout) + 300)
      assert.strictEqual((yield* Effect.flip(Fiber.join(fiber)))._tag, "StoreError")
      assert.deepStrictEqual(seen, ["asked", "stopped", "asked", "stopped", "asked", "stopped"])
    }).pipe(Effect.scoped)
  )

  it.effect("fails the run when it never stops, and blocks neither the run nor its interruption", () =>
    Effect.gen(function* () {
      const { appends, fiber } = yield* play(Number.POSITIVE_INFINITY, false)
      const left = yield* Effect.forkChild(Fiber.interrupt(fiber), { startImmediately: true })
      yield* TestClock.adjust(3 * Duration.toMillis(Limits.defaults.appendTimeout) + 300)
      yield* Fiber.join(left)
      assert.strictEqual(appends(), 3)

      // A store that is back a moment later is not given up.
      const other = yield* play(Number.POSITIVE_INFINITY, false)
      yield* TestClock.adjust(3 * Duration.toMillis(Limits.defaults.appendTimeout) + 299)
      assert.isUndefined(other.fiber.pollUnsafe())
      yield* TestClock.adjust(1)
      const error = yield* Effect.flip(Fiber.join(other.fiber))
      assert.isTrue(error._tag === "StoreError" && error.reason === "timeout")
    }).pipe(Effect.scoped)
  )
})
