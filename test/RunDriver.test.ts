import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Option, Queue, Schedule, Stream } from "effect"
import { TestClock } from "effect/testing"
import {
  Agent,
  Content,
  Hooks,
  Kernel,
  KernelError,
  MediaStore,
  Policy,
  ProtocolRegistry,
  Provider,
  RunDriver,
  RunStore,
  Skill,
  SkillRegistry
} from "kernai"
import { MockProvider } from "kernai/testing"
import { agent, clerk } from "./support/clerk.ts"

const process = (
  store: RunStore.RunStoreShape,
  pay: Effect.Effect<string> = Effect.succeed("ok"),
  model: Layer.Layer<Provider.Provider> = clerk("paid")
) =>
  Kernel.layer.pipe(
    Layer.provide([
      SkillRegistry.layer(
        Skill.dynamic("pay", { description: "pays", inputSchema: { type: "object" }, execute: () => pay })
      ),
      ProtocolRegistry.layer(),
      MediaStore.layerMemory,
      model
    ]),
    Layer.provideMerge(Layer.succeed(RunStore.RunStore, store))
  )

const asks = Policy.layer(() => Effect.succeed(Policy.confirm("it costs")))
const asksWithinMinutes = Policy.layer(() => Effect.succeed(Policy.confirm("it costs", { within: "5 minutes" })))

const submit = (runId: string) => Kernel.submit(agent, "pay eva", { runId })

const headOf = (runId: string) => RunStore.RunStore.use((store) => Effect.map(store.head(runId), Option.getOrThrow))

const statusOf = (runId: string) => Effect.map(headOf(runId), ({ status }) => status.type)

/** A model that replies once it may. */
const waiting = (may: Deferred.Deferred<void>) =>
  Layer.effect(
    Provider.Provider,
    Effect.map(Provider.Provider, (model) => ({
      ...model,
      stream: (request: Provider.Request) => Stream.unwrap(Effect.as(Deferred.await(may), model.stream(request)))
    }))
  ).pipe(Layer.provide(clerk("paid")))

const always: RunDriver.Claim = { isLost: () => false }

const given = (options: Partial<RunDriver.Options> = {}) =>
  RunDriver.make({ agents: [agent], onRun: () => Effect.void, ...options })

describe("RunDriver", () => {
  it.effect("drives the runs that a queue delivers, and those it delivers again later", () =>
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
      yield* Effect.gen(function* () {
        const driver = yield* given()
        const messages = yield* Queue.unbounded<string>()
        const driven: Array<RunDriver.Driven> = []
        yield* Effect.forkChild(
          Effect.forever(
            Effect.gen(function* () {
              const runId = yield* Queue.take(messages)
              const now = yield* driver.drive(runId, always)
              driven.push(now)
              if (now._tag === "AtRest" && now.next !== undefined) {
                yield* Effect.sleep(now.next.at)
                yield* Queue.offer(messages, runId)
              }
            })
          )
        )
        yield* submit("r")
        yield* Queue.offer(messages, "r")
        yield* TestClock.adjust("59 seconds")
        const { revision } = yield* headOf("r")
        assert.deepStrictEqual(driven, [{ _tag: "AtRest", next: { revision, at: 60_000 } }])
        yield* TestClock.adjust("2 seconds")
        assert.deepStrictEqual(driven.slice(1), [{ _tag: "AtRest" }])
        assert.strictEqual(yield* statusOf("r"), "completed")
      }).pipe(Effect.provide(process(store, undefined, Layer.succeed(Provider.Provider, provider))))
    })
  )

  it.effect("asks `resume` again about a call that another process launched after it was asked", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const isAsked = yield* Deferred.make<void>()
      const isEntered = yield* Deferred.make<void>()
      const seen: Array<number> = []
      const entering = Deferred.succeed(isEntered, undefined).pipe(
        Effect.andThen(Effect.sleep("30 seconds")),
        Effect.as("paid")
      )
      const other = yield* Layer.build(process(store, entering, waiting(isAsked)))
      const own = yield* Layer.build(process(store))
      const resume = (head: RunStore.RunHead) =>
        Effect.gen(function* () {
          const calls = yield* RunStore.inFlight(head.runId)
          seen.push(calls.length)
          // The other process comes back, and enters its call.
          yield* Deferred.succeed(isAsked, undefined)
          yield* Deferred.await(isEntered)
          const paid = { resolve: { output: [Content.text("paid")] } }
          return { recover: Object.fromEntries(calls.map(({ callId }) => [callId, paid])) }
        })
      const away = yield* Effect.provideContext(given({ workerId: "away" }), other)
      const here = yield* Effect.provideContext(given({ workerId: "here", resume }), own)
      yield* Effect.provideContext(submit("r"), own)
      yield* Effect.forkChild(away.drive("r", always))
      yield* TestClock.adjust("1 second")
      const driven = yield* Effect.forkChild(here.drive("r", always))
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(yield* Fiber.join(driven), { _tag: "AtRest" })
      assert.deepStrictEqual(seen, [0, 1])
      assert.strictEqual(Option.getOrThrow(yield* store.head("r")).status.type, "completed")
    })
  )

  it.effect("does not blame a run for attempts that ended as their processes shut down", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const retry = Schedule.upTo(Schedule.spaced("1 second"), { times: 2 })
      const own = yield* Layer.build(process(store))
      const slow = yield* Layer.build(process(store, undefined, waiting(yield* Deferred.make<void>())))
      yield* Effect.provideContext(submit("r"), own)
      for (let rollout = 0; rollout < 6; rollout++) {
        const driver = yield* Effect.provideContext(given({ retry, workerId: `pod-${rollout}` }), slow)
        const driven = yield* Effect.forkChild(driver.drive("r", always))
        yield* TestClock.adjust("5 seconds")
        const ended = yield* Effect.forkChild(Fiber.interrupt(driven))
        yield* TestClock.adjust("10 seconds")
        yield* Fiber.join(ended)
      }
      const driver = yield* Effect.provideContext(given({ retry }), own)
      assert.deepStrictEqual(yield* driver.next(Option.getOrThrow(yield* store.head("r"))), { _tag: "Attempt" })
      assert.deepStrictEqual(yield* driver.drive("r", always), { _tag: "AtRest" })
      assert.strictEqual(Option.getOrThrow(yield* store.head("r")).status.type, "completed")
    })
  )

  it.effect("gives up a run soon after its store was away", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      let isAway = false
      const away = new RunStore.StoreError({ operation: "acquire", reason: "unavailable", detail: "away" })
      const acquire: typeof store.acquire = (runId, claim) => (isAway ? Effect.fail(away) : store.acquire(runId, claim))
      const slow = yield* Layer.build(process(store, undefined, waiting(yield* Deferred.make<void>())))
      const own = yield* Layer.build(process({ ...store, acquire }))
      yield* Effect.provideContext(submit("r"), own)
      for (let crash = 0; crash < 3; crash++) {
        const resumed = yield* Effect.forkChild(Effect.provideContext(Kernel.resume(agent, "r"), slow))
        yield* TestClock.adjust("1 second")
        yield* Fiber.interrupt(resumed)
      }
      const driver = yield* Effect.provideContext(given({ retry: Schedule.recurs(1) }), own)
      const next = Effect.flatMap(store.head("r"), (head) => driver.next(Option.getOrThrow(head)))
      isAway = true
      yield* next
      isAway = false
      assert.strictEqual((yield* next)._tag, "Wait")
      yield* TestClock.adjust("3 seconds")
      yield* next
      assert.strictEqual(Option.getOrThrow(yield* store.head("r")).status.type, "failed")
    })
  )

  it.effect("continues a run at once whose process was stopped as it began", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const stopped = yield* Layer.build(process({ ...store, release: () => Effect.never }))
      const own = yield* Layer.build(process(store))
      yield* Effect.provideContext(submit("r"), own)
      const away = yield* Effect.provideContext(given({ workerId: "away" }), stopped)
      const left = yield* Effect.forkChild(away.drive("r", always))
      yield* TestClock.adjust("1 second")
      const driver = yield* Effect.provideContext(given({ workerId: "here" }), own)
      assert.deepStrictEqual(yield* driver.next(Option.getOrThrow(yield* store.head("r"))), { _tag: "Attempt" })
      const driven = yield* Effect.forkChild(driver.drive("r", always))
      yield* TestClock.adjust("100 millis")
      assert.strictEqual(Option.getOrThrow(yield* store.head("r")).status.type, "completed")
      yield* TestClock.adjust("5 minutes")
      yield* Fiber.join(driven)
      yield* Fiber.join(left)
    })
  )

  it.effect("returns the deadline of a question, and declines the question when it is asked then", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      yield* Effect.gen(function* () {
        const driver = yield* given()
        yield* submit("r")
        const first = yield* driver.drive("r", always)
        const at = 5 * 60_000
        assert.deepInclude({ ...first }, { next: { revision: (yield* headOf("r")).revision, at } })
        assert.deepStrictEqual(yield* driver.next(yield* headOf("r")), { _tag: "Wait", until: at })
        yield* TestClock.adjust("5 minutes")
        assert.deepStrictEqual(yield* driver.next(yield* headOf("r")), { _tag: "Changed" })
        assert.deepStrictEqual(yield* driver.next(yield* headOf("r")), { _tag: "Attempt" })
        assert.deepStrictEqual(yield* driver.drive("r", always), { _tag: "AtRest" })
        assert.strictEqual(yield* statusOf("r"), "completed")
      }).pipe(Effect.provide([process(store), asksWithinMinutes]))
    })
  )

  it.effect("declines a late question and goes on at once, whoever drives the run", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      yield* Effect.gen(function* () {
        const driver = yield* given()
        yield* submit("r")
        yield* driver.drive("r", always)
        yield* TestClock.adjust("5 minutes")
        assert.deepStrictEqual(yield* driver.drive("r", always), { _tag: "AtRest" })
        assert.strictEqual(yield* statusOf("r"), "completed")
      }).pipe(Effect.provide([process(store), asksWithinMinutes]))
    })
  )

  it.effect("leaves a run at rest whose host set a deadline in the metadata of its pause", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      yield* Effect.gen(function* () {
        const driver = yield* given()
        yield* submit("r")
        yield* driver.drive("r", always)
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(yield* driver.next(yield* headOf("r")), { _tag: "Rest" })
        assert.deepStrictEqual(yield* driver.drive("r", always), { _tag: "AtRest" })
        assert.strictEqual(yield* statusOf("r"), "waiting")
      }).pipe(
        Effect.provide([
          process(store),
          Hooks.layer({
            onTurnStarted: () =>
              Effect.succeed({ control: { _tag: "Pause", metadata: { questions: [{ answerBy: 500 }] } } })
          })
        ])
      )
    })
  )

  it.effect("resumes a run at rest as it is asked to, and returns the error of a run that refuses", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      yield* Effect.gen(function* () {
        const driver = yield* given()
        yield* submit("r")
        assert.deepStrictEqual(yield* driver.drive("r", always), { _tag: "AtRest" })
        const { revision } = yield* headOf("r")
        const answer = (callId: string, revision: number) =>
          driver.drive("r", always, { revision, answers: [{ callId, approved: true }] })
        const wrong = yield* answer("another", revision)
        assert.deepInclude(wrong._tag === "Refused" ? { ...wrong.error } : {}, { _tag: "QuestionNotFound" })
        const [question] = yield* Kernel.questions("r")
        assert.deepStrictEqual(yield* answer(question?.callId ?? "", revision - 1), { _tag: "AtRest" })
        assert.strictEqual(yield* statusOf("r"), "waiting")
        assert.deepStrictEqual(yield* answer(question?.callId ?? "", revision), { _tag: "AtRest" })
        assert.strictEqual(yield* statusOf("r"), "completed")
      }).pipe(Effect.provide([process(store), asks]))
    })
  )

  it.effect("stops a run whose claim is lost, and enters no write skill that its claim cannot prove (R-5)", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      let [asked, paid, released] = [0, 0, 0]
      yield* Effect.gen(function* () {
        const driver = yield* given()
        yield* submit("r")
        yield* submit("s")
        const attempt = (claim: Partial<RunDriver.Claim>, runId = "r") =>
          Effect.flatMap(headOf(runId), (head) =>
            driver.attempt(head, Effect.succeed({ ...always, release: Effect.sync(() => void released++), ...claim }))
          )
        const tags = (exit: Exit.Exit<unknown, RunDriver.TakeUpError> | undefined) =>
          exit === undefined ? "none" : Option.getOrThrow(Exit.findErrorOption(exit))._tag
        assert.strictEqual(tags(yield* attempt({ isLost: () => true })), "AgentCrashError")
        const unproven = { prove: () => Effect.sync(() => (asked++, false)) }
        assert.strictEqual(tags(yield* attempt(unproven)), "AgentCrashError")
        assert.deepStrictEqual([asked, paid, released], [1, 0, 2])
        const kept = yield* Effect.forkChild(attempt({ keep: Effect.sleep("1 second") }, "s"))
        yield* TestClock.adjust("2 seconds")
        assert.strictEqual(tags(yield* Fiber.join(kept)), "AgentCrashError")
        assert.deepStrictEqual([paid, released], [1, 3])
        const head = yield* headOf("r")
        assert.isUndefined(yield* driver.attempt(head, Effect.succeed(undefined)))
        assert.deepStrictEqual(yield* headOf("r"), head)
      }).pipe(
        Effect.provide(
          process(
            store,
            Effect.suspend(() => (paid++, Effect.never))
          )
        )
      )
    })
  )

  it.effect("drives as many runs at once as it has places, and lets each finish its step when interrupted", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const gate = yield* Deferred.make<string>()
      let entered = 0
      const pay = Effect.suspend(() => {
        entered++
        return Deferred.await(gate)
      })
      yield* Effect.gen(function* () {
        const driver = yield* given({ concurrency: 2 })
        const ids = ["a", "b", "c"]
        yield* Effect.forEach(ids, submit)
        const driving = yield* Effect.forEach(ids, (id) => Effect.forkChild(driver.drive(id, always)))
        yield* TestClock.adjust("1 second")
        assert.strictEqual(entered, 2)
        const stopping = yield* Effect.forkChild(Fiber.interruptAll(driving))
        yield* TestClock.adjust("1 second")
        yield* Deferred.succeed(gate, "ok")
        yield* TestClock.adjust("1 second")
        yield* Fiber.join(stopping)
        const results = yield* Effect.forEach(ids, (id) =>
          Effect.map(
            Stream.runCollect(store.read(id)),
            (records) => records.flatMap(({ events }) => events).filter((e) => e.type === "tool_call_completed").length
          )
        )
        assert.deepStrictEqual([entered, results], [2, [1, 1, 0]])
      }).pipe(Effect.provide(process(store, pay)))
    })
  )

  it.effect("says that a run needs a process with its agent, and refuses options without a place", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      yield* Effect.gen(function* () {
        const driver = yield* given({ agents: [Agent.make({ name: "other", instructions: "", model: "m" })] })
        yield* submit("r")
        const { agent } = yield* headOf("r")
        assert.deepStrictEqual(yield* driver.next(yield* headOf("r")), { _tag: "UnknownAgent" })
        assert.deepStrictEqual(yield* driver.drive("r", always), { _tag: "UnknownAgent", agent })
        assert.strictEqual((yield* Effect.flip(given({ concurrency: 0 })))._tag, "ConfigInvalid")
      }).pipe(Effect.provide(process(store)))
    })
  )
})
