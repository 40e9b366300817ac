import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Option } from "effect"
import { TestClock } from "effect/testing"
import { Kernel, RunStore } from "kernai"
import { Scenario } from "kernai/testing"
import { follow } from "../../src/cli/followRun.ts"
import { final } from "../support/blocks.ts"
import { kernel } from "../support/kernel.ts"
import { agent, plan, slow } from "../support/workflow.ts"
import { memoryScreen, type Written } from "./support.ts"

describe("a run that is followed", () => {
  it.effect("shows the id of a stored run, but not of its tasks or of a run that is not stored", () =>
    Effect.gen(function* () {
      const ids = Effect.fnUntraced(function* (isStored: boolean) {
        const screen = memoryScreen()
        const provider = Scenario.scripted({ root: [plan(["a"]), final("ok")], tasks: { a: [final("A")] } })
        const events = Kernel.stream(agent(), "go", { provider, runId: isStored ? "stored" : "gone" })
        yield* Effect.provide(
          follow(events, { form: "text", title: "a title", store: isStored ? "runs.db" : undefined }),
          screen.layer
        )
        return screen.progress().match(/^run .*/gm) ?? []
      })
      assert.deepStrictEqual(yield* ids(true), ["run       stored"])
      assert.deepStrictEqual(yield* ids(false), [])
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("says how a stored run continues that failed or was interrupted", () =>
    Effect.gen(function* () {
      const options = { form: "text", title: "a title", store: "runs.db" } as const
      const run = (screen: Written, provider: ReturnType<typeof Scenario.scripted>, runId: string) =>
        Effect.provide(follow(Kernel.stream(agent(), "go", { provider, runId }), options), screen.layer)

      const screen = memoryScreen()
      const failure = yield* Effect.flip(run(screen, Scenario.scripted({ root: [], tasks: {} }), "failed"))
      assert.strictEqual(failure.hint, "kernai runs resume failed --store runs.db")
      const running = yield* Effect.forkChild(
        run(screen, Scenario.scripted({ root: [slow(60_000, final("late"))], tasks: {} }), "stopped")
      )
      yield* TestClock.adjust("1 second")
      assert.include(screen.progress(), "run       stopped\n")
      yield* Fiber.interrupt(running)
      assert.include(screen.progress(), "continue it: kernai runs resume stopped --store runs.db\n")
      yield* TestClock.adjust("1 second")
      const statusOf = Effect.map(
        RunStore.RunStore.use((store) => store.head("stopped")),
        (head) => Option.getOrThrow(head).status.type
      )
      assert.strictEqual(yield* statusOf, "interrupted")
      const resumed = Kernel.resumeStream(agent(), "stopped", {
        provider: Scenario.scripted({ root: [slow(60_000, final("late"))], tasks: {} })
      })
      const again = yield* Effect.forkChild(Effect.provide(follow(resumed, options), screen.layer))
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* statusOf, "running")
      yield* Fiber.interrupt(again)
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* statusOf, "interrupted")
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("draws the Markdown of its answer in a terminal, and gives a pipe the text", () =>
    Effect.gen(function* () {
      const answer = Effect.fnUntraced(function* (isTerminal: boolean) {
        const screen = memoryScreen(false, 80, isTerminal)
        const provider = Scenario.scripted({ root: [final("- **a**")], tasks: {} })
        const events = Kernel.stream(agent(), "go", { provider })
        yield* Effect.provide(follow(events, { form: "text", title: "a title" }), screen.layer)
        return screen.out()
      })
      assert.strictEqual(yield* answer(true), "• **a**\n")
      assert.strictEqual(yield* answer(false), "- **a**\n")
    }).pipe(Effect.provide(kernel()))
  )
})
