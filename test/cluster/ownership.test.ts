/** Two runners that both believe they own a run. What a cluster without one of its rules does is found here, too. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option, Stream } from "effect"
import { MessageStorage, ShardingConfig } from "effect/cluster"
import { TestClock } from "effect/testing"
import { Kernel, KernelError, type Provider, RunStore } from "kernai"
import { RunEntity } from "kernai/cluster"
import { CurrentClaim } from "../../src/internal/run/claim.ts"
import { withoutRevisionCheck } from "../support/brokenKernels.ts"
import { clerk, client, kernelOn, machine, pay, runner, scripted } from "./support.ts"

/** A model that takes its time, so that two processes ask it side by side. */
const slow = (asked: () => void = () => {}): Provider.ProviderShape => ({
  name: "slow",
  stream: (request) => {
    asked()
    return Stream.unwrap(Effect.as(Effect.sleep("100 millis"), scripted.stream(request)))
  }
})

/** What is wrong with a run that should have paid once and ended. */
const findings = Effect.fnUntraced(function* (store: RunStore.RunStoreShape, paid: number) {
  const { revision, status } = Option.getOrThrow(yield* store.head("r"))
  const records = yield* Stream.runCollect(store.read("r"))
  const ends = records.flatMap(({ events }) => events).filter(({ type }) => type === "run_completed").length
  return [
    ...(status.type === "completed" ? [] : [`the run stands still: ${status.type}`]),
    ...(paid === 1 ? [] : [`paid ${paid} times`]),
    ...(ends <= 1 ? [] : [`ended ${ends} times`]),
    ...(records.every((record, index) => record.revision === index + 1) && records.length === revision ? [] : ["a gap"])
  ]
})

const memory = Layer.provide(MessageStorage.layerMemory, ShardingConfig.layer())

/** Sends one run to two owners at once. */
const twoOwners = (kernel?: typeof Kernel.layerNoProvider) =>
  Effect.gen(function* () {
    const store = yield* RunStore.makeMemory
    let paid = 0
    const setting = {
      provider: slow(),
      skills: [pay(Effect.sync(() => `${++paid}`))],
      ...(kernel === undefined ? {} : { kernel })
    }
    yield* Effect.provideContext(Kernel.submit(clerk, "go", { runId: "r" }), yield* Layer.build(kernelOn(store)))
    for (const _ of [1, 2]) {
      const messages = yield* Layer.build(Layer.fresh(memory))
      const one = yield* Effect.provide(machine, messages)
      yield* runner(store, setting).pipe(Effect.provide(one), Effect.provide(messages))
      const send = Effect.flatMap(RunEntity.RunEntity.client, (to) =>
        to("r").Drive(new RunEntity.Drive({ runId: "r", revision: 1 }), { discard: true })
      )
      yield* Effect.provide(send, one)
    }
    yield* TestClock.adjust("1 minute")
    return yield* findings(store, paid)
  }).pipe(Effect.scoped)

/** Answers a message when its attempt is over, however it ended. */
const thatAnswersEarly = RunEntity.RunEntity.toLayer(
  Effect.gen(function* () {
    const kernel = yield* Kernel.Kernel
    return RunEntity.RunEntity.of({
      Drive: ({ payload: { runId } }) => Effect.as(Effect.exit(kernel.resume(clerk, runId)), {}),
      Follow: () => Stream.empty,
      Has: () => Effect.succeed(true),
      Lend: () => Effect.succeed({ type: "again" } as const),
      Ping: () => Effect.succeed("")
    })
  })
)

/** Lets a process that has lost a run append once more to it while its owner runs it. */
const aLateAppend = (isEarly: boolean) =>
  Effect.gen(function* () {
    const store = yield* RunStore.makeMemory
    let [asked, paid] = [0, 0]
    const setting = { provider: slow(() => asked++), skills: [pay(Effect.sync(() => `${++paid}`))] }
    const here = yield* machine
    const owner = isEarly
      ? Layer.build(thatAnswersEarly.pipe(Layer.provide(kernelOn(store, setting))))
      : runner(store, setting, { pollInterval: "1 hour" })
    yield* Effect.provide(owner, here)
    yield* Effect.flatMap(Effect.provide(client(store, setting), here), (services) =>
      Effect.provideContext(Kernel.submit(clerk, "go", { runId: "r" }), services)
    )
    // Messages are read at intervals. Now the owner waits for the model.
    while (asked === 0) yield* TestClock.adjust("10 millis")
    const gone = new KernelError.CancellationError({ runId: "r" })
    const { revision } = Option.getOrThrow(yield* store.head("r"))
    yield* Kernel.resume(clerk, "r").pipe(
      Effect.provideService(CurrentClaim, { stop: () => gone }),
      Effect.exit,
      Effect.provide(yield* Layer.build(kernelOn(store, setting)))
    )
    assert.isAbove(Option.getOrThrow(yield* store.head("r")).revision, revision)
    yield* TestClock.adjust("10 minutes")
    return yield* findings(store, paid)
  }).pipe(Effect.scoped, Effect.provide(memory))

describe("a run with two owners", () => {
  it.effect("is advanced by one owner at a time, and pays once (R-2, R-6)", () =>
    Effect.map(twoOwners(), (found) => assert.deepStrictEqual(found, []))
  )

  it.effect("pays twice if appends are not compared with the revision", () =>
    Effect.map(twoOwners(withoutRevisionCheck), (found) => assert.include(found, "paid 2 times"))
  )

  it.effect("is brought to its end by its owner after another process appended to it", () =>
    Effect.map(aLateAppend(false), (found) => assert.deepStrictEqual(found, []))
  )

  it.effect("stalls if a message is answered before the run is at rest", () =>
    Effect.map(aLateAppend(true), (found) => assert.include(found, "the run stands still: running"))
  )
})
