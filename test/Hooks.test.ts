import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Agent, Call, Content, Hooks, Kernel, Skill } from "kernai"
import { MockProvider } from "kernai/testing"
import { kernel } from "./support/kernel.ts"

const write = Skill.make("write", {
  description: "Writes a letter",
  input: Schema.Struct({ to: Schema.String }),
  execute: ({ to }) => Effect.succeed(`written to ${to}`)
})
const agent = Agent.make({ instructions: "", model: "m", skills: [write] })
const asks = '<block type="command" name="write">{"to": "Oslo"}</block>'

/** Runs with a hook that returns this decision about the only call, and returns the result the model received. */
const told = Effect.fn("told")(function* (answer: Hooks.HookResult<Hooks.Review>) {
  const provider = MockProvider.make(asks, "<final>done</final>")
  const hooks = Hooks.layer({ onToolCallStarted: () => Effect.succeed(answer) })
  yield* Effect.provide(Kernel.run(agent, "go", { provider }), hooks)
  return JSON.stringify(provider.lastCall?.messages.at(-1)?.content)
})

describe("the decision of a hook about a call", () => {
  it.effect("runs the call with other arguments, or replaces it by a result (DR-11)", () =>
    Effect.gen(function* () {
      assert.include(yield* told({}), "written to Oslo")
      assert.include(yield* told(Hooks.rewrite({ to: "Rome" })), "written to Rome")
      for (const result of ["not today", [Content.text("not today")], Call.error("Closed", "not today")]) {
        const text = yield* told(Hooks.skip(result))
        assert.include(text, "not today")
        assert.notInclude(text, "written")
      }
      assert.include(yield* told(Hooks.skip(Call.error("Closed", "not today"))), "error")
    }).pipe(Effect.provide(kernel(write)))
  )
})

describe("the decision of a hook about a run", () => {
  it.effect("pauses the run with a reason, or finishes it without an answer (DR-9, DR-10)", () =>
    Effect.gen(function* () {
      const run = (answer: Hooks.HookResult) =>
        Kernel.run(agent, "go", { provider: MockProvider.make("<final>done</final>") }).pipe(
          Effect.provide(Hooks.layer({ onTurnStarted: () => Effect.succeed(answer) })),
          Effect.flip
        )
      const paused = yield* run(Hooks.pause("look", { at: 1 }))
      assert.deepInclude({ ...paused }, { _tag: "RunPaused", reason: "look", metadata: { at: 1 } })
      assert.strictEqual((yield* run(Hooks.pause()))._tag, "RunPaused")
      assert.deepInclude({ ...(yield* run(Hooks.finish("closed"))) }, { _tag: "RunFinished", reason: "closed" })
    }).pipe(Effect.provide(kernel(write)))
  )
})
