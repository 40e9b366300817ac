/** Runners of a cluster that an operator drains. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import { MessageStorage, ShardingConfig } from "effect/cluster"
import { TestClock } from "effect/testing"
import { Kernel, Processes, RunStore } from "kernai"
import { clerk, client, clientMachine, machine, pay, runner } from "./support.ts"

describe("a drained runner", () => {
  it.effect("finishes the step of its run, leaves it and all others, and continues them when it is undrained", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const paying = pay(Effect.as(Effect.sleep("2 seconds"), "ok"))
      yield* Effect.provide(runner(store, { skills: [paying] }, { workerId: "a" }), yield* machine)
      const here = yield* Effect.provide(client(store), yield* clientMachine)
      const submit = (runId: string) => Effect.provideContext(Kernel.submit(clerk, "go", { runId }), here)
      const statusOf = (runId: string) => Effect.map(store.head(runId), (head) => Option.getOrThrow(head).status)
      yield* submit("r")
      while ((yield* statusOf("r")).phase !== "tool_call_started") yield* TestClock.adjust("100 millis")
      yield* Effect.provideService(Processes.drain({ process: "a" }), RunStore.RunStore, store)
      yield* submit("s")
      yield* TestClock.adjust("1 minute")
      const reason = "no runner has agent clerk"
      assert.deepStrictEqual(yield* statusOf("r"), { type: "queued", phase: "tool_call_completed", reason })
      assert.deepStrictEqual(yield* statusOf("s"), { type: "queued", phase: "run_started", reason })
      yield* Effect.provideService(Processes.undrain({ process: "a" }), RunStore.RunStore, store)
      yield* TestClock.adjust("30 seconds")
      assert.strictEqual((yield* statusOf("r")).type, "completed")
      assert.strictEqual((yield* statusOf("s")).type, "completed")
    }).pipe(Effect.scoped, Effect.provide(Layer.provide(MessageStorage.layerMemory, ShardingConfig.layer())))
  )
})
