import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Result, Schema } from "effect"
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

describe("several sets of hooks", () => {
  const run = (replies: ReadonlyArray<string>, ...sets: ReadonlyArray<Hooks.Hooks>) => {
    const provider = MockProvider.make(...replies)
    // Layers in one list do not see each other.
    const layers = sets.map((hooks) => Layer.suspend(() => Hooks.layer(hooks)))
    const all = layers.reduce((all, layer) => Layer.merge(all, layer), Layer.empty)
    return Kernel.run(agent, "go", { provider }).pipe(
      Effect.provide(all),
      Effect.result,
      Effect.map((result) => ({ result, provider }))
    )
  }

  it.effect("run in turn, each with what those before it returned", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const { provider, result } = yield* run(
        [asks, "<final>done</final>"],
        {
          onRunStarted: () => Effect.succeed({ context: { a: 1, b: 1 } }),
          onTurnPrepared: ({ prepared }) => Effect.succeed({ value: { ...prepared, system: "first" } }),
          onToolCallStarted: () => Effect.succeed(Hooks.rewrite({ to: "Rome" }))
        },
        {
          onRunStarted: ({ context }) => Effect.succeed({ context: { b: 2, seen: context } }),
          onTurnPrepared: ({ prepared }) =>
            Effect.succeed({ value: { ...prepared, system: `${prepared.system} and second` } }),
          onToolCallStarted: ({ call }) => Effect.sync(() => void seen.push(call.input)),
          onRunCompleted: ({ context }) => Effect.sync(() => void seen.push(context))
        }
      )
      assert.isTrue(Result.isSuccess(result))
      assert.deepStrictEqual(seen, [{ to: "Rome" }, { a: 1, b: 2, seen: { a: 1, b: 1 } }])
      assert.strictEqual(JSON.stringify(provider.messagesAt(0)?.[0]?.content).includes("first and second"), true)
      assert.include(JSON.stringify(provider.lastCall?.messages.at(-1)?.content), "written to Rome")
    }).pipe(Effect.provide(kernel(write)))
  )

  it.effect("end where one stops the run, skips the call or fails", () =>
    Effect.gen(function* () {
      let asked = 0
      const counts = { onTurnStarted: () => Effect.sync(() => void asked++) }
      const tag = (result: Result.Result<unknown, { readonly _tag: string }>) =>
        Result.isSuccess(result) ? "done" : result.failure._tag
      const pauses = yield* run(["<final>done</final>"], { onTurnStarted: () => Effect.succeed(Hooks.pause()) }, counts)
      assert.deepStrictEqual([tag(pauses.result), asked], ["RunPaused", 0])
      const fails = yield* run(["<final>done</final>"], { onTurnStarted: () => Effect.fail("broken") }, counts)
      assert.deepStrictEqual([tag(fails.result), asked], ["ExtensionFailed", 0])
      const stops = yield* run(["<final>done</final>"], counts, { onTurnStarted: () => Effect.succeed(Hooks.finish()) })
      assert.deepStrictEqual([tag(stops.result), asked], ["RunFinished", 1])
      const rewrites = () => Effect.succeed(Hooks.rewrite({ to: "Rome" }))
      const skips = { onToolCallStarted: () => Effect.succeed(Hooks.skip("not today")) }
      const { provider } = yield* run([asks, "<final>done</final>"], skips, { onToolCallStarted: rewrites })
      assert.include(JSON.stringify(provider.lastCall?.messages.at(-1)?.content), "not today")
    }).pipe(Effect.provide(kernel(write)))
  )

  it.effect("take another turn if either asks for one, and tell every observer", () =>
    Effect.gen(function* () {
      const paused: Array<string> = []
      let more = true
      const asksForMore = {
        onTurnCompleted: () => Effect.sync(() => (more ? { control: { _tag: "Continue" as const } } : undefined)),
        onPause: () => Effect.fail("broken")
      }
      const stops = {
        onTurnCompleted: () => {
          if (more) return Effect.sync(() => void (more = false))
          return Effect.succeed(Hooks.pause("enough"))
        },
        onPause: ({ reason }: { readonly reason: string }) => Effect.sync(() => void paused.push(reason))
      }
      const { provider, result } = yield* run(["<final>one</final>", "<final>two</final>"], asksForMore, stops)
      assert.isTrue(Result.isFailure(result))
      assert.strictEqual(provider.calls.length, 2)
      assert.deepStrictEqual(paused, ["enough"])
    }).pipe(Effect.provide(kernel(write)))
  )
})
