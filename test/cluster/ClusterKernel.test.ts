import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Option, Queue, Schema, Scope, Stream } from "effect"
import { EntityId, MessageStorage, ShardingConfig, TestRunner } from "effect/cluster"
import { TestClock } from "effect/testing"
import { Agent, Kernel, KernelError, Policy, Provider, type RunEvent, RunStore } from "kernai"
import { RunEntity } from "kernai/cluster"
import { MockProvider } from "kernai/testing"
import { make as makeKernel } from "../../src/cluster/internal/clusterVerbs.ts"
import * as Messages from "../../src/cluster/internal/messenger.ts"
import {
  client,
  clerk,
  clientMachine,
  entities,
  kernelOn,
  machine,
  pay,
  runner,
  type Setting,
  soon,
  spoken
} from "./support.ts"

const headOf = (store: RunStore.RunStoreShape, runId: string) => Effect.map(store.head(runId), Option.getOrThrow)

const statusOf = (store: RunStore.RunStoreShape, runId: string) =>
  Effect.map(headOf(store, runId), ({ status }) => status.type)

const revisionsIn = (store: RunStore.RunStoreShape, runId: string) =>
  Effect.map(Stream.runCollect(store.read(runId)), (records) => records.map(({ revision }) => revision))

const onOneMachine = <A, E>(test: Effect.Effect<A, E, Scope.Scope | Layer.Success<typeof TestRunner.layer>>) =>
  test.pipe(Effect.scoped, Effect.provide(TestRunner.layer))

/** Machines of their own, which share the messages. */
const onMachines = <A, E>(test: Effect.Effect<A, E, Scope.Scope | Layer.Success<typeof MessageStorage.layerMemory>>) =>
  test.pipe(Effect.scoped, Effect.provide(Layer.provide(MessageStorage.layerMemory, ShardingConfig.layer())))

/** Pauses before each payment. */
const confirms = Policy.layer(({ name }) =>
  Effect.succeed(name === "pay" ? Policy.confirm("it costs") : Policy.allowed)
)

/** Starts a client that receives the replies to its messages as `askBy` says. */
const clientThatAsks = Effect.fnUntraced(function* (
  store: RunStore.RunStoreShape,
  askBy: (messenger: Messages.Messenger) => Messages.Messenger["ask"]
) {
  const messenger = yield* Messages.make
  const kernel = Context.get(yield* Layer.build(kernelOn(store)), Kernel.Kernel)
  return makeKernel({ kernel, store, shared: store, messenger: { ...messenger, ask: askBy(messenger) } })
})

/** Sends a message whose runner replies that it was interrupted. */
const interrupted =
  ({ send }: Messages.Messenger): Messages.Messenger["ask"] =>
  (message) =>
    Effect.andThen(send(message), Effect.interrupt)

/** Starts a runner whose run `r` waits for a person. Returns the answers that let it pay. */
const paused = Effect.fnUntraced(function* (store: RunStore.RunStoreShape, setting?: Setting) {
  yield* Effect.provideContext(runner(store, setting), yield* Layer.build(confirms))
  const here = yield* client(store)
  yield* Effect.provideContext(Kernel.submit(clerk, "go", { runId: "r" }), here)
  yield* TestClock.adjust("2 seconds")
  const open = yield* Effect.provideContext(Kernel.questions("r"), here)
  return open.map(({ callId }) => ({ callId, approved: true }))
})

describe("ClusterKernel", () => {
  it.effect("runs the runs of a client on a runner, and returns their results", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const runs: Array<string> = []
      yield* runner(store, {}, { onRun: ({ runId }) => Effect.sync(() => runs.push(runId)) })
      const here = yield* client(store)
      const result = yield* soon(
        yield* Effect.forkChild(Effect.provideContext(Kernel.run(clerk, "pay eva", { runId: "r" }), here))
      )
      assert.strictEqual(result.text, "paid")
      assert.deepStrictEqual(runs, ["r"])
      const id = yield* Effect.provideContext(Kernel.submit(clerk, "pay eva"), here)
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* statusOf(store, id), "completed")
    }).pipe(onOneMachine)
  )

  it.effect("decodes the answer of an agent with an output schema", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ instructions: "", model: "m", output: Schema.Struct({ sum: Schema.Number }) })
      const provider = MockProvider.make('{"sum":3}')
      const store = yield* RunStore.makeMemory
      yield* runner(store, { provider }, { agents: [agent] })
      const here = yield* client(store)
      const running = yield* Effect.forkChild(Effect.provideContext(Kernel.run(agent, "1 + 2"), here))
      assert.deepStrictEqual((yield* soon(running)).output, { sum: 3 })
    }).pipe(onOneMachine)
  )

  it.effect("fails a run with the same error as in its own process", () =>
    Effect.gen(function* () {
      const refused = new KernelError.ProviderError({ provider: "p", reason: "authentication", detail: "no key" })
      const provider: Provider.ProviderShape = { name: "p", stream: () => Stream.fail(refused) }
      const store = yield* RunStore.makeMemory
      yield* runner(store, { provider })
      const here = yield* client(store)
      const running = yield* Effect.forkChild(Effect.exit(Effect.provideContext(Kernel.run(clerk, "go"), here)))
      const error = Option.getOrThrow(Exit.findErrorOption(yield* soon(running)))
      assert.instanceOf(error, KernelError.ProviderError)
      assert.deepInclude({ ...error }, { provider: "p", reason: "authentication", detail: "no key" })
    }).pipe(onOneMachine)
  )

  it.effect("refuses options that cannot be sent to another process", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const here = yield* client(store)
      const error = yield* Effect.flip(
        Effect.provideContext(Kernel.run(clerk, "go", { runId: "r", parts: true }), here)
      )
      assert.deepInclude({ ...error }, { _tag: "AgentConfigInvalid", path: "options.parts" })
      assert.isTrue(Option.isNone(yield* store.head("r")))
    }).pipe(onOneMachine)
  )

  it.effect("waits for a run whose runner replies that it was interrupted", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      yield* runner(store)
      const client = yield* clientThatAsks(store, interrupted)
      const running = yield* Effect.forkChild(client.run(clerk, "go", { runId: "r" }))
      assert.strictEqual((yield* soon(running)).text, "paid")
    }).pipe(onOneMachine)
  )

  it.effect("waits for a resumed run whose runner replies that it was interrupted", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const gate = yield* Deferred.make<string>()
      const answers = yield* paused(store, { skills: [pay(Deferred.await(gate))] })
      const client = yield* clientThatAsks(store, interrupted)
      const running = yield* Effect.forkChild(client.resume(clerk, "r", { answers }))
      yield* TestClock.adjust("30 seconds")
      assert.isUndefined(running.pollUnsafe())
      assert.strictEqual(yield* statusOf(store, "r"), "running")
      yield* Deferred.succeed(gate, "ok")
      assert.strictEqual((yield* soon(running)).text, "paid")
    }).pipe(onOneMachine)
  )

  it.effect("waits for a resumed run whose runner never replies", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const answers = yield* paused(store)
      const client = yield* clientThatAsks(
        store,
        ({ send }) =>
          (message) =>
            Effect.andThen(send(message), Effect.never)
      )
      const running = yield* Effect.forkChild(client.resume(clerk, "r", { answers }))
      assert.strictEqual((yield* soon(running)).text, "paid")
    }).pipe(onOneMachine)
  )

  it.effect("sends a resume again that an interrupted runner has not begun", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const answers = yield* paused(store)
      let asked = 0
      const client = yield* clientThatAsks(
        store,
        ({ ask }) =>
          (message) =>
            asked++ === 0 ? Effect.interrupt : ask(message)
      )
      const events = yield* Effect.forkChild(Stream.runCollect(client.resumeStream(clerk, "r", { answers })))
      assert.strictEqual((yield* soon(events)).at(-1)?.type, "run_completed")
      assert.strictEqual(asked, 2)
    }).pipe(onOneMachine)
  )

  it.effect("continues a run when its caller leaves", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const gate = yield* Deferred.make<string>()
      yield* runner(store, { skills: [pay(Deferred.await(gate))] })
      const here = yield* client(store)
      const running = yield* Effect.forkChild(Effect.provideContext(Kernel.run(clerk, "pay eva", { runId: "r" }), here))
      yield* TestClock.adjust("2 seconds")
      yield* Fiber.interrupt(running)
      assert.strictEqual(yield* statusOf(store, "r"), "running")
      yield* Deferred.succeed(gate, "ok")
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
    }).pipe(onOneMachine)
  )

  it.effect("pauses for a person, and continues once on a runner when two processes answer at once (R-6)", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      let paid = 0
      const skills = [pay(Effect.sync(() => `${++paid}`))]
      yield* Layer.build(confirms).pipe(
        Effect.flatMap((policy) => Effect.provideContext(runner(store, { skills }), policy))
      )
      const [here, there] = [yield* client(store), yield* client(store)]
      const running = yield* Effect.forkChild(
        Effect.exit(Effect.provideContext(Kernel.run(clerk, "pay eva", { runId: "r" }), here))
      )
      const paused = Option.getOrThrow(Exit.findErrorOption(yield* soon(running)))
      assert.strictEqual(paused._tag, "RunPaused")
      const [question] = yield* Effect.provideContext(Kernel.questions("r"), here)
      const answers = [{ callId: question?.callId ?? "", approved: true }]
      const { revision } = yield* headOf(store, "r")
      const both = yield* Effect.forEach(
        [here, there],
        (one) => Effect.exit(Effect.provideContext(Kernel.answer("r", answers, { revision }), one)),
        { concurrency: 2 }
      )
      assert.strictEqual(both.filter(Exit.isSuccess).length, 1)
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
      assert.strictEqual(paid, 1)
    }).pipe(onOneMachine)
  )

  it.effect("resumes a waiting run with its answers, and returns the error of answers that fit no question", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      yield* Layer.build(confirms).pipe(Effect.flatMap((policy) => Effect.provideContext(runner(store), policy)))
      const here = yield* client(store)
      yield* soon(
        yield* Effect.forkChild(Effect.exit(Effect.provideContext(Kernel.run(clerk, "go", { runId: "r" }), here)))
      )
      const resume = (callId: string) =>
        Effect.flatMap(
          Effect.forkChild(
            Effect.exit(
              Effect.provideContext(Kernel.resume(clerk, "r", { answers: [{ callId, approved: true }] }), here)
            )
          ),
          soon
        )
      const wrong = Option.getOrThrow(Exit.findErrorOption(yield* resume("another")))
      assert.deepInclude({ ...wrong }, { _tag: "QuestionNotFound", callId: "another" })
      assert.strictEqual(yield* statusOf(store, "r"), "waiting")
      const [question] = yield* Effect.provideContext(Kernel.questions("r"), here)
      const right = yield* resume(question?.callId ?? "")
      assert.strictEqual(Exit.isSuccess(right) ? right.value.text : right.cause, "paid")
    }).pipe(onOneMachine)
  )

  it.effect("sends the text of a reply to the stream of another process as it arrives", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const pieces = yield* Queue.unbounded<string>()
      yield* runner(store, { provider: spoken(pieces) })
      const here = yield* client(store)
      const events: Array<RunEvent.RunEvent> = []
      const text = () => events.map((event) => (event.type === "text_chunk" ? event.text : "")).join("")
      const streaming = yield* Effect.forkChild(
        Stream.runForEach(Kernel.stream(clerk, "go", { runId: "r" }), (event) =>
          Effect.sync(() => events.push(event))
        ).pipe(Effect.provideContext(here))
      )
      yield* TestClock.adjust("2 seconds")
      yield* Queue.offerAll(pieces, ["one ", "two "])
      yield* TestClock.adjust("1 second")
      assert.strictEqual(text(), "one two ")
      yield* Queue.offerAll(pieces, ["three", "end"])
      yield* soon(streaming)
      assert.strictEqual(text(), "one two three")
      const revisions = events.flatMap((event) => ("revision" in event ? [event.revision] : []))
      const stored = (yield* Stream.runCollect(store.read("r"))).flatMap(({ events }) => events)
      assert.deepStrictEqual(
        revisions,
        stored.map(({ revision }) => revision)
      )
      const last = events.at(-1)
      assert.strictEqual(last?.type === "run_completed" ? last.result?.text : last?.type, "one two three")
    }).pipe(onOneMachine)
  )

  it.effect("cancels a run on its runner from another process", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      let stopped = 0
      const skills = [pay(Effect.onInterrupt(Effect.never, () => Effect.sync(() => stopped++)))]
      yield* runner(store, { skills })
      const here = yield* client(store)
      const running = yield* Effect.forkChild(
        Effect.exit(Effect.provideContext(Kernel.run(clerk, "go", { runId: "r" }), here))
      )
      yield* TestClock.adjust("2 seconds")
      yield* Effect.provideContext(Kernel.cancel("r", { reason: "enough" }), here)
      const error = Option.getOrThrow(Exit.findErrorOption(yield* soon(running)))
      assert.deepInclude({ ...error }, { _tag: "RunCancelled", reason: "enough" })
      assert.strictEqual(stopped, 1)
    }).pipe(onOneMachine)
  )

  it.effect("does not run a run that was cancelled while no runner was there", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const here = yield* client(store)
      yield* Effect.provideContext(Effect.andThen(Kernel.submit(clerk, "go", { runId: "r" }), Kernel.cancel("r")), here)
      const { revision } = yield* headOf(store, "r")
      const runs: Array<string> = []
      yield* runner(store, {}, { onRun: ({ runId }) => Effect.sync(() => runs.push(runId)) })
      yield* TestClock.adjust("2 minutes")
      assert.deepStrictEqual(runs, [])
      assert.deepInclude(yield* headOf(store, "r"), { revision })
      assert.strictEqual(yield* statusOf(store, "r"), "cancelled")
    }).pipe(onOneMachine)
  )

  it.effect("finds runs that a process without the cluster submitted, and runs whose message was lost", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const plain = yield* Layer.build(kernelOn(store))
      yield* runner(store)
      yield* Effect.provideContext(Kernel.submit(clerk, "go", { runId: "queued" }), plain)
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual(yield* statusOf(store, "queued"), "completed")
      yield* Effect.provideContext(Kernel.submit(clerk, "go", { runId: "lost" }), plain)
      yield* store.release("lost", "local")
      const head = yield* headOf(store, "lost")
      if (head.lease !== undefined) yield* store.release("lost", head.lease.workerId)
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(yield* statusOf(store, "lost"), "running")
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* statusOf(store, "lost"), "completed")
    }).pipe(onOneMachine)
  )

  it.effect("tries a run again at the time that its provider names", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      let calls = 0
      const busy = new KernelError.ProviderError({
        provider: "p",
        reason: "rate_limited",
        detail: "later",
        retryAt: 60_000
      })
      const provider: Provider.ProviderShape = {
        name: "p",
        stream: (request) => (calls++ === 0 ? Stream.fail(busy) : MockProvider.make("at last").stream(request))
      }
      yield* runner(store, { provider })
      const here = yield* client(store)
      yield* Effect.provideContext(Kernel.submit(clerk, "go", { runId: "r" }), here)
      yield* TestClock.adjust("50 seconds")
      assert.deepStrictEqual([calls, yield* statusOf(store, "r")], [1, "failed"])
      yield* TestClock.adjust("30 seconds")
      assert.deepStrictEqual([calls, yield* statusOf(store, "r")], [2, "completed"])
    }).pipe(onOneMachine)
  )

  it.effect("declines a question without an answer in time, on any runner", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const asks = Policy.layer(() => Effect.succeed(Policy.confirm("it costs", { within: "5 minutes" })))
      yield* Effect.provide(runner(store), asks)
      const here = yield* client(store)
      yield* Effect.provideContext(Kernel.submit(clerk, "pay eva", { runId: "r" }), here)
      yield* TestClock.adjust("4 minutes")
      assert.strictEqual(yield* statusOf(store, "r"), "waiting")
      yield* TestClock.adjust("2 minutes")
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
      const state = Option.getOrThrow(yield* store.load("r"))
      assert.include(JSON.stringify(state), "Nobody answered in time.")
    }).pipe(onOneMachine)
  )

  it.effect("reads no runs that wait for a person without a deadline", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      let read = 0
      const noting: RunStore.RunStoreShape = {
        ...store,
        list: (filter) =>
          Effect.tap(store.list(filter), (heads) =>
            Effect.sync(() => void (read += filter?.status?.includes("waiting") === true ? heads.length : 0))
          )
      }
      const asks = Policy.layer(() => Effect.succeed(Policy.confirm("it costs")))
      yield* Effect.provide(runner(noting), asks)
      const here = yield* client(store)
      const ids = Array.from({ length: 20 }, (_, number) => `r${number}`)
      yield* Effect.forEach(ids, (runId) => Kernel.submit(clerk, "pay eva", { runId })).pipe(
        Effect.provideContext(here)
      )
      yield* TestClock.adjust("2 minutes")
      assert.lengthOf(yield* store.list({ status: ["waiting"] }), ids.length)
      assert.strictEqual(read, 0)
    }).pipe(onOneMachine)
  )

  it.effect("starts one run at each scheduled time when two processes have the schedule", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      yield* runner(store)
      const here = yield* client(store)
      const often = Kernel.schedule(clerk, "pay eva", { name: "often", cron: "*/10 * * * *", timeZone: "UTC" })
      yield* Effect.forkChild(Effect.provideContext(often, here))
      yield* Effect.forkChild(Effect.provideContext(often, here))
      yield* TestClock.adjust("25 minutes")
      const heads = yield* store.list({ order: "oldest" })
      assert.deepStrictEqual(
        heads.map(({ runId, status }) => [runId, status.type]),
        [
          ["often@1970-01-01T00:00:00.000Z", "completed"],
          ["often@1970-01-01T00:10:00.000Z", "completed"],
          ["often@1970-01-01T00:20:00.000Z", "completed"]
        ]
      )
    }).pipe(onOneMachine)
  )

  it.effect("leaves a run of an agent that no runner has, until one has it", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const scope = yield* Scope.make()
      const first = yield* Scope.provide(machine, scope)
      const others = runner(store, {}, { agents: [Agent.make({ instructions: "", model: "m" })] })
      yield* Scope.provide(Effect.provide(others, first), scope)
      const here = yield* Effect.provide(client(store), yield* clientMachine)
      yield* Effect.provideContext(Kernel.submit(clerk, "go", { runId: "r" }), here)
      yield* TestClock.adjust("30 seconds")
      const { status } = yield* headOf(store, "r")
      assert.deepStrictEqual(status, { type: "queued", phase: "run_started", reason: "no runner has agent clerk" })
      assert.strictEqual(yield* Effect.provide(entities, first), 0)
      yield* soon(yield* Effect.forkChild(Scope.close(scope, Exit.void)))
      yield* Effect.provide(runner(store), yield* machine)
      yield* TestClock.adjust("30 seconds")
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
    }).pipe(onMachines)
  )

  it.effect("leaves a run to others whose journal a newer version wrote", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      let isOld = true
      const newer = new RunStore.StoreError({ operation: "read", reason: "format", detail: "format 9" })
      const old: RunStore.RunStoreShape = {
        ...store,
        load: (runId) => Effect.suspend(() => (isOld ? Effect.fail(newer) : store.load(runId)))
      }
      yield* runner(old)
      const here = yield* client(store)
      yield* Effect.provideContext(Kernel.submit(clerk, "go", { runId: "r" }), here)
      yield* TestClock.adjust("2 minutes")
      assert.deepStrictEqual(yield* revisionsIn(store, "r"), [1])
      assert.strictEqual(yield* statusOf(store, "r"), "queued")
      isOld = false
      yield* TestClock.adjust("2 minutes")
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
    }).pipe(onOneMachine)
  )

  it.effect("finishes the call it started when its runner is stopped, and continues on the next", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const gate = yield* Deferred.make<string>()
      let entered = 0
      const skills = [
        pay(
          Effect.andThen(
            Effect.sync(() => entered++),
            Deferred.await(gate)
          )
        )
      ]
      const scope = yield* Scope.make()
      const first = yield* Scope.provide(machine, scope)
      yield* Scope.provide(Effect.provide(runner(store, { skills }), first), scope)
      const here = yield* Effect.provide(client(store), yield* clientMachine)
      const running = yield* Effect.forkChild(Effect.provideContext(Kernel.run(clerk, "go", { runId: "r" }), here))
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(entered, 1)
      const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
      yield* TestClock.adjust("1 second")
      yield* Deferred.succeed(gate, "ok")
      yield* soon(closing)
      assert.strictEqual(yield* statusOf(store, "r"), "running")
      yield* Effect.provide(runner(store, { skills }), yield* machine)
      yield* TestClock.adjust("1 minute")
      assert.strictEqual((yield* soon(running)).text, "paid")
      assert.strictEqual(entered, 1)
    }).pipe(onMachines)
  )

  it("gives runs to the group of shards that their id names", () => {
    const groupOf = (runId: string) => RunEntity.RunEntity.getShardGroup(EntityId.make(RunEntity.idOf(runId)))
    assert.deepStrictEqual(["gpu!run_1", "ada~run_1", "Any ! text", "x".repeat(300)].map(groupOf), [
      "gpu",
      "default",
      "default",
      "default"
    ])
  })

  it.effect("deletes the messages of runs that are removed", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      yield* runner(store)
      const here = yield* client(store)
      yield* soon(yield* Effect.forkChild(Effect.provideContext(Kernel.run(clerk, "go", { runId: "r" }), here)))
      const { journal } = yield* MessageStorage.MemoryDriver
      assert.isAbove(journal.length, 0)
      yield* Context.get(here, RunStore.RunStore).remove(["r"])
      assert.strictEqual(journal.length, 0)
    }).pipe(onOneMachine)
  )
})
