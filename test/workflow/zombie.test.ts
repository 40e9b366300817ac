import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Stream } from "effect"
import { TestClock } from "effect/testing"
import {
  Kernel,
  KernelError,
  MediaStore,
  ProtocolRegistry,
  type Provider,
  RunStore,
  Skill,
  SkillRegistry
} from "kernai"
import { Scenario } from "kernai/testing"
import { command, final } from "../support/blocks.ts"
import { agent, isTask, plan } from "../support/workflow.ts"

const provider = Scenario.scripted({
  root: [plan(["a"]), final("ok")],
  tasks: { a: [command("pay"), final("A")] }
})

const task = "run:t1/a"

const processOn = (store: RunStore.RunStoreShape, pay: Effect.Effect<string>) =>
  Layer.fresh(Kernel.layerNoProvider).pipe(
    Layer.provide([
      SkillRegistry.layer(
        Skill.dynamic("pay", { description: "pays", inputSchema: { type: "object" }, execute: () => pay })
      ),
      ProtocolRegistry.layer(),
      MediaStore.layerMemory,
      Layer.succeed(RunStore.RunStore, store)
    ])
  )

/** Begins a process and stops it as it asks its store for the task; another has the run then, and pays as it wakes. */
const stopped = Effect.fnUntraced(function* (
  store: RunStore.RunStoreShape,
  work: Effect.Effect<unknown, KernelError.KernelError, Kernel.Kernel>,
  asleep: (stop: Effect.Effect<void>) => Partial<RunStore.RunStoreShape>
) {
  const [asks, woken, paying, paid] = yield* Effect.all([
    Deferred.make<void>(),
    Deferred.make<void>(),
    Deferred.make<void>(),
    Deferred.make<void>()
  ])
  const stop = Effect.andThen(Deferred.succeed(asks, undefined), Deferred.await(woken))
  const own = processOn({ ...store, ...asleep(stop) }, Effect.die(new Error("paid twice")))
  const first = yield* Effect.forkChild(Effect.flip(Effect.provide(work, own)))
  yield* Deferred.await(asks)
  const pay = Effect.andThen(Deferred.succeed(paying, undefined), Deferred.await(paid))
  const resumed = Kernel.resume(agent(), "run", { provider, workerId: "second" })
  const second = yield* Effect.forkChild(Effect.provide(resumed, processOn(store, Effect.as(pay, "paid"))))
  yield* Deferred.await(paying)
  yield* Deferred.succeed(woken, undefined)
  const error = yield* Fiber.join(first)
  assert.instanceOf(error, KernelError.ConcurrentAppendError)
  assert.strictEqual(error.runId, "run")
  yield* Deferred.succeed(paid, undefined)
  assert.strictEqual((yield* Fiber.join(second)).text, "ok")
  const journal = yield* Stream.runCollect(store.read(task))
  assert.notInclude(
    journal.map(({ workerId }) => workerId.split("#")[0]),
    "first"
  )
})

describe("a suspended process that wakes after another took the run (R-5)", () => {
  it.effect("does not start the task that it was about to start", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const work = Kernel.run(agent(), "go", { runId: "run", provider, workerId: "first" })
      yield* stopped(store, work, (stop) => ({
        append: (records, state) =>
          Effect.andThen(
            state.runId === task && records[0].revision === 1 ? stop : Effect.void,
            store.append(records, state)
          )
      }))
    })
  )

  it.effect("does not continue the task that it was about to continue", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const silent: Provider.ProviderShape = {
        name: "script",
        stream: (request) => (isTask(request, "a") ? Stream.never : provider.stream(request))
      }
      const run = Kernel.run(agent(), "go", { runId: "run", provider: silent })
      const died = yield* Effect.forkChild(Effect.provide(run, processOn(store, Effect.never)))
      yield* TestClock.adjust("1 second")
      yield* Fiber.interrupt(died)
      const work = Kernel.resume(agent(), "run", { provider, workerId: "first" })
      let loads = 0
      yield* stopped(store, work, (stop) => ({
        load: (runId) => Effect.andThen(runId === task && ++loads === 2 ? stop : Effect.void, store.load(runId))
      }))
    })
  )
})
