import { assert, describe, it } from "@effect/vitest"
import { Cause, Deferred, Effect, Exit, Fiber, Layer, Logger, Option, Result, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import {
  Agent,
  type Call,
  Hooks,
  Kernel,
  KernelError,
  MediaStore,
  Message,
  Middleware,
  Model,
  Policy,
  PromptPipeline,
  Protocol,
  ProtocolRegistry,
  RunStore,
  Skill,
  SkillRegistry
} from "kernai"
import { MockProvider } from "kernai/testing"

const agent = Agent.make({ name: "agent", instructions: "", model: "scripted", skills: "all", dialect: "tools" })

const look = Skill.dynamic("look", {
  description: "looks",
  inputSchema: { type: "object" },
  execute: (input) =>
    Effect.sync(() => {
      Reflect.set(Object(Reflect.get(input, "at")), "x", 2)
      Reflect.set(input, "at", "elsewhere")
      return { seen: [1] }
    })
})

const runWith = (hooks: Hooks.Hooks, options?: Kernel.RunOptions) =>
  Effect.gen(function* () {
    const provider = MockProvider.make({ calls: [{ id: "call-a", name: "look", input: { at: { x: 1 } } }] }, "done")
    return yield* Kernel.run(agent, "go", { runId: "run", provider, context: { list: [1] }, ...options }).pipe(
      Effect.provide(Hooks.layer(hooks))
    )
  })

const stored = Kernel.layerNoProvider.pipe(
  Layer.provide([SkillRegistry.layer(look), ProtocolRegistry.layer(), MediaStore.layerMemory]),
  Layer.provideMerge(RunStore.layerMemory)
)

const state = Effect.flatMap(
  RunStore.RunStore.use((store) => store.load("run")),
  Effect.fromOption
)
const statusNow = Effect.map(state, ({ status }) => status.type)

const layer = Kernel.layerMemory.pipe(Layer.provide([SkillRegistry.layer(look), MockProvider.layer("unused")]))

/** Every object of a value, however deep. */
const objectsOf = (value: unknown, seen = new Set<object>()): ReadonlySet<object> => {
  if (typeof value !== "object" || value === null || seen.has(value) || ArrayBuffer.isView(value)) return seen
  seen.add(value)
  for (const key of Reflect.ownKeys(value)) objectsOf(Reflect.get(value, key), seen)
  if ("turns" in value) objectsOf(value.turns, seen)
  if ("prompt" in value) objectsOf(value.prompt, seen)
  return seen
}

const gates = ["onTurnPrepared", "onToolCallsStarted", "onToolCallStarted", "onRunCompleted"] as const
const settles = [
  "onRunStarted",
  "onTurnStarted",
  "onModelStarted",
  "onModelCompleted",
  "onToolCallCompleted",
  "onToolCallsCompleted",
  "onTurnCompleted"
] as const

describe("the input of a hook", () => {
  for (const name of [...gates, ...settles]) {
    it.effect(`${name}: everything is frozen, at every depth (DR-2)`, () =>
      Effect.gen(function* () {
        let given = 0
        yield* runWith({
          [name]: (args: Hooks.HookArgs) =>
            Effect.sync(() => {
              for (const object of objectsOf(args)) {
                given++
                assert.isTrue(Object.isFrozen(object), `${name}: ${JSON.stringify(object)}`)
              }
            })
        })
        assert.isAbove(given, 5)
      }).pipe(Effect.provide(layer))
    )
  }

  it.effect("a hook that mutates its input fails, and changes nothing (DR-2)", () =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(
        runWith({
          onTurnStarted: ({ context }) => Effect.sync(() => void Object.assign(context, { mine: true }))
        })
      )
      assert.isTrue(Exit.isFailure(exit))
      const result = yield* Kernel.resume(agent, "run", {
        provider: MockProvider.make("done")
      })
      assert.strictEqual(result.text, "done")
    }).pipe(Effect.provide(layer))
  )

  it.effect("the host's context object is never mutated (DR-2)", () =>
    Effect.gen(function* () {
      const context = { list: [1] }
      yield* runWith({ onTurnStarted: () => Effect.succeed({ context: { more: true } }) }, { context })
      context.list.push(2)
      assert.deepStrictEqual(context, { list: [1, 2] })
    }).pipe(Effect.provide(layer))
  )

  it.effect("a context returned by a hook is copied, so later mutations do not reach the run (DR-2)", () =>
    Effect.gen(function* () {
      const given = { list: [1] }
      yield* runWith({
        onRunStarted: () => Effect.succeed({ context: given }),
        onTurnPrepared: ({ context }) =>
          Effect.sync(() => {
            given.list.push(2)
            assert.deepStrictEqual(context, { list: [1] })
          })
      })
      assert.deepStrictEqual(given.list, [1, 2, 2])
      const state = yield* Effect.flatMap(RunStore.RunStore, (store) => store.load("run"))
      assert.deepStrictEqual(Option.getOrThrow(state).context, { list: [1] })
    }).pipe(Effect.provide(stored))
  )

  it.effect("context set by two consecutive hooks is stored with the one commit after them (DR-8, R-7)", () =>
    Effect.gen(function* () {
      yield* runWith({
        onTurnStarted: () => Effect.succeed({ context: { started: true } }),
        onTurnPrepared: () => Effect.succeed({ context: { prepared: true } })
      })
      const journal = yield* RunStore.RunStore.use((store) => Stream.runCollect(store.read("run")))
      const kept = journal.filter(({ delta }) => delta.context !== undefined)
      const both = { type: "turn_prepared" as const, context: { started: true, prepared: true } }
      assert.deepStrictEqual(
        kept.map(({ delta, events }) => ({ type: events[0]?.type, context: delta.context })),
        [both, both]
      )
    }).pipe(Effect.provide(stored))
  )

  it.effect("commitKey identifies the run and the revision of the hook (DR-8)", () =>
    Effect.gen(function* () {
      const keys: Array<string> = []
      const note = ({ commitKey }: Hooks.HookArgs) => Effect.sync(() => void keys.push(commitKey))
      yield* runWith({ onRunStarted: note, onTurnPrepared: note, onToolCallCompleted: note, onRunCompleted: note })
      assert.deepStrictEqual(keys, ["run:1", "run:2", "run:9", "run:12", "run:16"])
    }).pipe(Effect.provide(layer))
  )

  it.effect("onRunResumed runs before anything else when a stored run continues", () =>
    Effect.gen(function* () {
      const order: Array<string> = []
      const note = (name: string) => () => Effect.sync(() => void order.push(name))
      const hooks = { onRunStarted: note("started"), onRunResumed: note("resumed"), onTurnPrepared: note("prepared") }
      yield* runWith(hooks)
      assert.notInclude(order, "resumed")
      const fork = yield* Kernel.fork("run", { revision: 1 })
      const resume = (given: Hooks.Given<string, never>) =>
        Effect.provide(Kernel.resume(agent, fork, { provider: MockProvider.make("done") }), Hooks.layer(given))
      order.length = 0
      const failed = yield* Effect.exit(resume({ ...hooks, onRunResumed: () => Effect.fail("not yet") }))
      assert.isTrue(Exit.isFailure(failed))
      assert.deepStrictEqual(order, [])
      yield* resume({
        ...hooks,
        onRunResumed: ({ state }) =>
          Effect.sync(() => {
            order.push(`fork of ${state.forkedFrom?.runId}`)
            return { context: { resumed: true } }
          })
      })
      assert.deepStrictEqual(order, ["fork of run", "started", "prepared"])
      const state = yield* Effect.flatMap(RunStore.RunStore, (store) => store.load(fork))
      assert.strictEqual(Option.getOrThrow(state).context["resumed"], true)
    }).pipe(Effect.provide(stored))
  )

  it.effect("commitKey is the same when a hook runs again after a crash (DR-8)", () =>
    Effect.gen(function* () {
      const keys: Array<string> = []
      const cut = ({ commitKey }: Hooks.HookArgs) =>
        Effect.suspend(() => (keys.push(commitKey) === 1 ? Effect.interrupt : Effect.void))
      assert.isTrue(Exit.isFailure(yield* Effect.exit(runWith({ onTurnPrepared: cut }))))
      const provider = MockProvider.make("done")
      yield* Effect.provide(Kernel.resume(agent, "run", { provider }), Hooks.layer({ onTurnPrepared: cut }))
      assert.deepStrictEqual(keys, ["run:2", "run:2"])
    }).pipe(Effect.provide(stored))
  )

  it.effect(
    "settings of the model call from a pipeline or onTurnPrepared are stored with the prompt (DR-4, DR-15)",
    () =>
      Effect.gen(function* () {
        const pipeline: PromptPipeline.PromptPipelineShape = {
          build: (context) =>
            Effect.map(PromptPipeline.simple.build(context), (built) => ({
              ...built,
              generation: { seed: 7 },
              cacheBreakpoints: [0]
            }))
        }
        const dying = { onModelStarted: () => Effect.interrupt }
        yield* Effect.exit(Effect.provideService(runWith(dying), PromptPipeline.PromptPipeline, pipeline))
        const other = Model.make("other")
        const warm = { ...agent, generation: { seed: 1, temperature: 0.5 } }
        const changing = runWith(
          {
            ...dying,
            onTurnPrepared: ({ prepared }) => {
              const generation = { ...prepared.generation, temperature: 0 }
              return Effect.succeed({ value: { ...prepared, model: other, generation } })
            }
          },
          { runId: "changed" }
        )
        yield* Effect.exit(Effect.provideService(changing, PromptPipeline.PromptPipeline, pipeline))
        const provider = MockProvider.make("done")
        yield* Kernel.resume(warm, "run", { provider })
        yield* Kernel.resume(warm, "changed", { provider })
        assert.deepStrictEqual(
          provider.calls.map(({ cacheBreakpoints, generation, model }) => [model.id, generation, cacheBreakpoints]),
          [
            ["scripted", { seed: 7, temperature: 0.5 }, [0]],
            ["other", { seed: 7, temperature: 0 }, [0]]
          ]
        )
        const journal = yield* RunStore.RunStore.use((store) => Stream.runCollect(store.read("changed")))
        assert.deepStrictEqual(
          journal.flatMap(({ events }) =>
            events.flatMap((event) => (event.type === "turn_prepared" ? [event.model] : []))
          ),
          ["other"]
        )
      }).pipe(Effect.provide(stored))
  )

  it.effect("onTurnPrepared receives the original prompt again when the turn is rewound (DR-19)", () =>
    Effect.gen(function* () {
      const hooks: Hooks.Hooks = {
        onTurnPrepared: ({ prepared }) =>
          Effect.succeed({ value: { ...prepared, messages: [...prepared.messages, Message.user("Be brief.")] } })
      }
      yield* Effect.exit(runWith({ ...hooks, onModelStarted: () => Effect.fail("not now") }))
      const provider = MockProvider.make("done")
      const resumed = Kernel.resume(agent, "run", { provider, rewind: true })
      yield* Effect.provide(resumed, Hooks.layer(hooks))
      assert.deepStrictEqual(provider.messagesAt(0)?.map(Message.text), ["go", "Be brief."])
    }).pipe(Effect.provide(stored))
  )

  it.effect("onModelCompleted receives provider-specific parts, which are never stored (DR-27)", () =>
    Effect.gen(function* () {
      const raw: Array<string> = []
      yield* runWith({
        onModelCompleted: (args) => Effect.sync(() => void raw.push(args.raw.map((part) => part.type).join(" ")))
      })
      assert.deepStrictEqual(raw, [
        "tool-params-start tool-params-delta tool-params-end tool-call finish",
        "text-start text-delta text-end finish"
      ])
      const store = yield* RunStore.RunStore
      const journal = JSON.stringify(yield* Stream.runCollect(store.read("run")))
      assert.isFalse(journal.includes("tool-params-delta"))
    }).pipe(Effect.provide(stored))
  )

  it.effect("a skill that mutates its input changes nothing that is stored (R-3)", () =>
    Effect.gen(function* () {
      const result = yield* runWith({})
      assert.deepStrictEqual(result.calls[0]?.input, { at: { x: 1 } })
    }).pipe(Effect.provide(layer))
  )
})

describe("an observer", () => {
  const journalNow = Effect.map(
    RunStore.RunStore.use((store) => Stream.runCollect(Stream.orDie(store.read("run")))),
    (records) => records.at(-1)?.events.at(-1)?.type
  )

  const asking: Policy.PolicyShape = { authorize: () => Effect.succeed(Policy.confirm("sure?")) }
  const pauses: ReadonlyArray<
    readonly [title: string, reason: string, hooks: Hooks.Hooks, policy?: Policy.PolicyShape]
  > = [
    ["a hook", "later", { onTurnStarted: () => Effect.succeed(Hooks.pause("later", { at: 1 })) }],
    ["a policy that asks", "approval_required", {}, asking],
    ["the hook of the end", "not yet", { onRunCompleted: () => Effect.succeed(Hooks.pause("not yet")) }]
  ]
  for (const [title, reason, hooks, policy] of pauses) {
    for (const [end, broken] of [
      ["fails", Effect.fail("broken")],
      ["dies", Effect.die("broken")]
    ] as const) {
      it.effect(`is notified of a pause of ${title} once it is stored, and changes nothing when it ${end} (DR-8)`, () =>
        Effect.gen(function* () {
          const told: Array<unknown> = []
          const services = yield* Effect.context<RunStore.RunStore>()
          const onPause: Hooks.Hooks["onPause"] = ({ reason, state }) =>
            Effect.flatMap(Effect.provideContext(journalNow, services), (stored) => {
              told.push([reason, state.status.type, stored])
              return broken
            })
          const paused = yield* Effect.flip(
            Effect.provideService(runWith({ ...hooks, onPause }), Policy.Policy, policy)
          )
          assert.deepInclude(paused, { _tag: "RunPaused", reason })
          assert.deepStrictEqual(told, [[reason, "paused", "paused"]])
        }).pipe(Effect.provide(stored))
      )
    }
  }

  it.effect("is notified of a retried model call once it is stored, and changes nothing (DR-8, DR-24)", () =>
    Effect.gen(function* () {
      yield* Effect.exit(runWith({ onModelStarted: () => Effect.interrupt }))
      assert.strictEqual(yield* journalNow, "model_started")
      const told: Array<unknown> = []
      const services = yield* Effect.context<RunStore.RunStore>()
      const hooks = Hooks.layer({
        onModelRestarted: ({ turn }) =>
          Effect.flatMap(Effect.provideContext(journalNow, services), (stored) => {
            told.push([stored, turn?.attempt])
            return Effect.fail("broken")
          })
      })
      const cutOff = Kernel.resume(agent, "run", { provider: MockProvider.make().onCall(() => Effect.interrupt) })
      yield* Effect.exit(Effect.provide(cutOff, hooks))
      const resumed = Kernel.resume(agent, "run", { provider: MockProvider.make("done") })
      assert.strictEqual((yield* Effect.provide(resumed, hooks)).text, "done")
      assert.deepStrictEqual(told, [
        ["model_restarted", 2],
        ["model_restarted", 3]
      ])
    }).pipe(Effect.provide(stored))
  )
})

describe("the failure of an observer", () => {
  it.effect("changes nothing when it is thrown before an effect is returned (DR-8)", () =>
    Effect.gen(function* () {
      const thrown = (): never => {
        throw new Error("broken")
      }
      const hooks: Hooks.Hooks = {
        onStreamPart: thrown,
        onPause: thrown,
        onModelRestarted: thrown,
        onRunFailed: thrown
      }
      const paused = runWith({ ...hooks, onModelStarted: () => Effect.succeed(Hooks.pause("later")) })
      assert.deepInclude(yield* Effect.flip(paused), { _tag: "RunPaused", reason: "later" })
      assert.strictEqual(yield* statusNow, "paused")
      const resumed = Kernel.resume(agent, "run", { provider: MockProvider.make("done") })
      const failing = { ...hooks, onModelCompleted: () => Effect.fail("no") }
      const failed = Effect.provideService(resumed, Hooks.Hooks, failing)
      assert.strictEqual((yield* Effect.flip(failed))._tag, "ExtensionFailed")
      assert.strictEqual(yield* statusNow, "failed")
      assert.strictEqual((yield* Effect.provideService(resumed, Hooks.Hooks, hooks)).text, "done")
    }).pipe(Effect.provide(stored))
  )

  it.effect("is logged without keys (S-7)", () => {
    const lines: Array<string> = []
    const broken = Effect.die(new Error("401 Bearer sk-SECRET-0123456789abcdef"))
    const hooks: Hooks.Hooks = {
      onStreamPart: () => broken,
      onPause: () => broken,
      onModelRestarted: () => broken,
      onRunFailed: () => broken
    }
    return Effect.gen(function* () {
      yield* Effect.exit(runWith({ ...hooks, onModelStarted: () => Effect.succeed(Hooks.pause()) }))
      const failing = { ...hooks, onModelCompleted: () => Effect.fail("no") }
      const resumed = Kernel.resume(agent, "run", { provider: MockProvider.make("done") })
      yield* Effect.exit(Effect.provideService(resumed, Hooks.Hooks, failing))
      const log = lines.join("\n")
      for (const name of Object.keys(hooks)) assert.include(log, `${name} failed`)
      assert.include(log, "401 Bearer <redacted>")
      assert.notInclude(log, "SECRET")
    }).pipe(
      Effect.provide([
        stored,
        Logger.layer([Logger.make(({ cause, message }) => void lines.push(`${message} ${Cause.pretty(cause)}`))])
      ])
    )
  })
})

describe("a hook", () => {
  for (const [what, value, message] of [
    ["has no prototype", Object.assign(Object.create(null), { code: 3 }), `{"code":3}`],
    ["is no error", { code: 3 }, `{"code":3}`],
    ["is one", new Error("broken"), "broken"]
  ]) {
    it.effect(`fails the run with its defect, which ${what} (DR-14, DR-18)`, () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(runWith({ onTurnStarted: () => Effect.die(value) }))
        assert.deepInclude(error, { _tag: "ExtensionFailed", extension: "onTurnStarted", detail: message })
        const { status } = yield* state
        assert.deepInclude(status, { type: "failed", phase: "turn_started" })
        assert.deepInclude(status, {
          error: {
            tag: "ExtensionFailed",
            message: `onTurnStarted failed: ${message}`,
            fields: { extension: "onTurnStarted", detail: message }
          }
        })
      }).pipe(Effect.provide(stored))
    )
  }

  for (const name of [...gates, ...settles].filter((name) => name !== "onTurnCompleted")) {
    it.effect(`${name} that returns continue changes nothing (DR-10)`, () =>
      Effect.gen(function* () {
        const result = yield* runWith({ [name]: () => Effect.succeed({ control: { _tag: "Continue" } }) })
        assert.strictEqual(result.text, "done")
        assert.strictEqual(result.turns, 2)
      }).pipe(Effect.provide(stored))
    )
  }

  it.effect("ends a run that has an answer with any reason (DR-10)", () =>
    Effect.gen(function* () {
      const result = yield* runWith({
        onTurnCompleted: ({ state }) =>
          Effect.succeed(state.turns.length === 2 ? Hooks.finish("guardrail", { asked: true }) : undefined)
      })
      assert.strictEqual(result.text, "done")
    }).pipe(Effect.provide(stored))
  )
})

describe("a resumed run", () => {
  const going = Skill.dynamic("going", {
    description: "goes",
    inputSchema: { type: "object" },
    effects: "read",
    execute: () => Effect.succeed("gone")
  })
  const goes = Protocol.make("goes", { effects: "read", handle: () => Effect.succeed("gone") })
  /** A kernel that has what reads, or nothing at all. */
  const on = (has: boolean) =>
    Layer.fresh(Kernel.layerNoProvider).pipe(
      Layer.provide([
        has ? SkillRegistry.layer(going) : SkillRegistry.layer(),
        has ? ProtocolRegistry.layer(goes) : ProtocolRegistry.layer(),
        MediaStore.layerMemory
      ])
    )
  const cutOff = Middleware.layerTool(() => Effect.interrupt)

  for (const [what, call, again] of [
    ["asks about a call whose skill nobody has any more: it may have written", "going", "InFlightToolCalls"],
    ["asks about a request whose protocol nobody has any more", undefined, "InFlightToolCalls"],
    ["asks nobody about the kernel's own words", "/skills", undefined]
  ] as const) {
    it.effect(`${what} (R-2, DR-17)`, () =>
      Effect.gen(function* () {
        const said =
          call === undefined ? `<block type="goes">x</block>` : `<block type="command" name="${call}">{}</block>`
        const speaking = { ...agent, dialect: "blocks" as const }
        const provider = MockProvider.make(said)
        const first = Kernel.run(speaking, "go", { runId: "run", provider })
        yield* Effect.exit(Effect.provide(first, [cutOff, on(true)]))
        const resumed = Kernel.resume(speaking, "run", { provider: MockProvider.make("<final>done</final>") })
        const exit = yield* Effect.result(Effect.provide(resumed, on(false)))
        assert.strictEqual(Result.isFailure(exit) ? exit.failure._tag : undefined, again)
      }).pipe(Effect.provide(RunStore.layerMemory))
    )
  }

  it.effect("continues in its original dialect, also from its first turn (DR-15)", () =>
    Effect.gen(function* () {
      yield* Effect.exit(runWith({ onModelStarted: () => Effect.interrupt }))
      const provider = MockProvider.make({ calls: [{ id: "call-a", name: "look", input: {} }] }, "done")
      const other = { ...agent, dialect: "blocks" as const }
      const result = yield* Kernel.resume(other, "run", { provider })
      assert.strictEqual(result.text, "done")
      assert.deepStrictEqual(
        provider.calls.map(({ tools }) => tools.map(({ name }) => name)),
        [["look"], ["look"]]
      )
      const events = yield* Stream.runCollect(Kernel.resumeStream(agent, "run", { provider }))
      assert.deepStrictEqual(
        events.map(({ step, type }) => [type, step]),
        [["run_completed", 1]]
      )
    }).pipe(Effect.provide(stored))
  )

  it.effect("continues in its original dialect when no turn is open (DR-15)", () =>
    Effect.gen(function* () {
      yield* Effect.exit(runWith({ onTurnCompleted: () => Effect.interrupt }))
      const provider = MockProvider.make("done")
      yield* Kernel.resume({ ...agent, dialect: "blocks" }, "run", { provider })
      assert.deepStrictEqual(
        provider.calls.map(({ tools }) => tools.map(({ name }) => name)),
        [["look"]]
      )
    }).pipe(Effect.provide(stored))
  )

  for (const [where, hooks] of [
    ["with its last turn", {}],
    [
      "at the beginning of another one",
      {
        onTurnCompleted: () => Effect.succeed({ control: { _tag: "Continue" } }),
        onTurnStarted: ({ state }) => Effect.succeed(state.turns.length < 2 ? undefined : Hooks.finish("over"))
      }
    ]
  ] satisfies ReadonlyArray<readonly [string, Hooks.Hooks]>) {
    it.effect(`publishes the same end event again when it ended ${where} (R-23)`, () =>
      Effect.gen(function* () {
        const provider = MockProvider.make({ calls: [{ id: "call-a", name: "look", input: {} }] }, "done")
        const events = yield* Stream.runCollect(Kernel.stream(agent, "go", { runId: "run", provider }))
        const again = yield* Stream.runCollect(Kernel.resumeStream(agent, "run", { provider }))
        assert.deepStrictEqual(again, events.slice(-1))
      }).pipe(Effect.provide([stored, Hooks.layer(hooks)]))
    )
  }

  it.effect("waits for an existing lease: nothing is committed before that expires (R-5)", () =>
    Effect.gen(function* () {
      yield* Effect.exit(runWith({ onModelStarted: () => Effect.interrupt }))
      const store = yield* RunStore.RunStore
      const provider = MockProvider.make("done")
      const before = yield* state
      yield* store.acquire("run", { workerId: "other", lease: "1 second" })
      const refused = yield* Effect.flip(Kernel.resume(agent, "run", { provider }))
      assert.deepStrictEqual(refused, new KernelError.RunBusy({ runId: "run", workerId: "other", expiresAt: 1_000 }))
      assert.deepStrictEqual(yield* state, before)
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* Kernel.resume(agent, "run", { provider })).text, "done")
    }).pipe(Effect.provide(stored))
  )

  it.effect("offers its model the prepared tools, even when there are more by now (DR-15)", () =>
    Effect.gen(function* () {
      yield* Effect.exit(runWith({ onModelStarted: () => Effect.interrupt }))
      const provider = MockProvider.make({ calls: [{ id: "call-a", name: "look", input: {} }] }, "done")
      const late = Skill.make("late", {
        description: "came later",
        input: Schema.Struct({}),
        execute: () => Effect.succeed("")
      })
      yield* SkillRegistry.SkillRegistry.use((registry) => registry.register(late))
      yield* Kernel.resume(agent, "run", { provider })
      assert.deepStrictEqual(
        provider.calls.map(({ tools }) => tools.map(({ name }) => name)),
        [["look"], ["look", "late"]]
      )
    }).pipe(
      Effect.scoped,
      Effect.provide(
        Layer.provideMerge(
          Kernel.layerNoProvider,
          Layer.mergeAll(
            SkillRegistry.layer(look),
            ProtocolRegistry.layer(),
            MediaStore.layerMemory,
            RunStore.layerMemory
          )
        )
      )
    )
  )
})

describe("onToolCallsStarted", () => {
  const invented: ReadonlyArray<readonly [title: string, value: (call: Call.Call) => ReadonlyArray<Call.Call>]> = [
    ["has another name", (call) => [{ ...call, name: "other" }]],
    ["is of another kind", (call) => [{ ...call, kind: "builtin" }]],
    ["has another id", (call) => [{ ...call, callId: "call-b" }]],
    ["is there twice", (call) => [call, call]]
  ]
  for (const [title, value] of invented) {
    it.effect(`cannot add a call: one that ${title} fails the run, and nothing runs (DR-11)`, () =>
      Effect.gen(function* () {
        const hooks: Hooks.Hooks = {
          onToolCallsStarted: ({ calls }) => Effect.succeed({ value: calls.flatMap(value) })
        }
        const error = yield* Effect.flip(runWith(hooks))
        assert.deepInclude(error, { _tag: "ExtensionFailed", extension: "onToolCallsStarted" })
        const state = yield* RunStore.RunStore.use((store) => store.load("run"))
        assert.deepStrictEqual(
          Option.map(state, ({ currentTurn }) => [currentTurn?.inFlight, currentTurn?.completed]),
          Option.some([[], []])
        )
      }).pipe(Effect.provide(stored))
    )
  }

  it.effect("cannot mark a call as reviewed (DR-11)", () =>
    Effect.gen(function* () {
      const offered: Array<string> = []
      yield* runWith({
        onToolCallsStarted: ({ calls }) =>
          Effect.succeed({ value: calls.map((call) => ({ ...call, review: "accepted" as const })) }),
        onToolCallStarted: ({ call }) => Effect.sync(() => void offered.push(call.callId))
      })
      assert.deepStrictEqual(offered, ["call-a"])
    }).pipe(Effect.provide(stored))
  )
})

describe("a hook of concurrent calls", () => {
  it.effect("decides when it is the first to end the run, with its reason and metadata (DR-10)", () =>
    Effect.gen(function* () {
      const calls = ["call-a", "call-b"].map((id) => ({ id, name: "look", input: {} }))
      const provider = MockProvider.make({ calls })
      const ended = Kernel.run({ ...agent, concurrency: 2 }, "go", { runId: "run", provider }).pipe(
        Effect.provide(
          Hooks.layer({
            onToolCallCompleted: ({ result }) =>
              Effect.succeed(Hooks.finish(`after ${result.callId}`, { of: result.callId }))
          })
        )
      )
      assert.deepInclude(yield* Effect.flip(ended), { _tag: "RunFinished", reason: "after call-a" })
      const state = yield* RunStore.RunStore.use((store) => store.load("run"))
      assert.deepInclude(Option.getOrThrow(state).status, {
        source: "caller",
        reason: "after call-a",
        metadata: { of: "call-a" }
      })
    }).pipe(Effect.provide(stored))
  )

  it.effect("that never returns is interrupted with the run (R-15)", () =>
    Effect.gen(function* () {
      const asked = yield* Deferred.make<void>()
      const hooks = Hooks.layer({
        onToolCallCompleted: () => Effect.andThen(Deferred.succeed(asked, undefined), Effect.never)
      })
      const calls = ["call-a", "call-b"].map((id) => ({ id, name: "look", input: {} }))
      const provider = MockProvider.make({ calls }, "done")
      const fiber = yield* Kernel.run({ ...agent, concurrency: 2 }, "go", { runId: "run", provider }).pipe(
        Effect.provide(hooks),
        Effect.forkChild
      )
      yield* Deferred.await(asked)
      yield* Fiber.interrupt(fiber)
      const result = yield* Kernel.resume(agent, "run", { provider, recover: { "call-b": "retry" } })
      assert.deepStrictEqual(
        result.calls.map(({ callId }) => callId),
        ["call-a", "call-b"]
      )
    }).pipe(Effect.provide(stored))
  )
})

describe("the stored failure of a run", () => {
  const failing = (error: KernelError.PromptError) =>
    Effect.gen(function* () {
      const pipeline = { build: () => Effect.fail(error) }
      assert.strictEqual(
        yield* Effect.flip(Effect.provideService(runWith({}), PromptPipeline.PromptPipeline, pipeline)),
        error
      )
      const state = yield* RunStore.RunStore.use((store) => store.load("run"))
      const { status } = Option.getOrThrow(state)
      return status.type === "failed" ? status.error : undefined
    }).pipe(Effect.provide(stored))

  it.effect("has its tag, message and fields as JSON (DR-18, R-8)", () =>
    Effect.gen(function* () {
      const limited = { provider: "p", reason: "rate_limited", detail: "", retryAt: 5 } as const
      assert.deepStrictEqual(yield* failing(new KernelError.ProviderError(limited)), {
        tag: "ProviderError",
        message: "p: rate_limited",
        fields: limited
      })
      const problems = ["a", "b"]
      const invalid = new KernelError.SkillPackInvalid({ name: "pack", problems })
      assert.deepInclude(yield* failing(invalid), { fields: { name: "pack", problems } })
    })
  )

  it.effect("contains no keys, in its message or its fields (S-7)", () =>
    Effect.gen(function* () {
      const detail = "invalid key Bearer sk-SECRET-0123456789abcdef"
      const error = new KernelError.ProviderError({ provider: "p", reason: "authentication", detail })
      const clean = "invalid key Bearer <redacted>"
      assert.deepInclude(yield* failing(error), {
        message: `p: ${clean}`,
        fields: { provider: "p", reason: "authentication", detail: clean }
      })
    })
  )
})
