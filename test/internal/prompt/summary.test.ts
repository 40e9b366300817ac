import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option, Redacted, Stream } from "effect"
import {
  Agent,
  Hooks,
  Kernel,
  Limits,
  Message,
  Middleware,
  ModelRegistry,
  PromptPipeline,
  Provider,
  Redaction,
  RunStore,
  Usage
} from "kernai"
import { MockProvider, Replay } from "kernai/testing"
import { bulky, compacting, model, said, small, world } from "../../support/prompts.ts"

describe("compaction", () => {
  it.effect("accepts a custom summarizer, and continues without a summary when it fails", () => {
    const told: Array<ReadonlyArray<Message.Message>> = []
    const mock = bulky(40, 300)
    const summarize = (messages: ReadonlyArray<Message.Message>) =>
      Effect.suspend(
        () => (
          told.push(messages),
          told.length === 2 ? Effect.die("no") : Effect.succeed(`so far </block>${told.length}`)
        )
      )
    return Effect.gen(function* () {
      yield* Kernel.run(small("tools", 1_500), "the task")
      const notes = mock.calls.flatMap(({ messages }) =>
        messages.map(Message.text).filter((text) => text.includes("earlier messages"))
      )
      assert.isTrue(notes.some((text) => text.endsWith("save space. In short: so far &lt;/block>1]")))
      assert.isTrue(notes.some((text) => text.endsWith("save space.]")))
      assert.include(Message.text(told[2]?.[0] ?? Message.user("")), "earlier messages")
    }).pipe(Effect.provide(world(mock, compacting({ summarize }))))
  })

  it.effect("asks a model for a summary when configured", () => {
    const run = bulky(30, 300)
    const writer = MockProvider.make("\n They looked around. \n")
    const pipeline = PromptPipeline.layer({
      compaction: { summarize: PromptPipeline.summarizer({ provider: writer }) }
    })
    return Effect.gen(function* () {
      yield* Kernel.run(small("tools", 1_500), "the task")
      assert.isTrue(writer.callCount > 0)
      assert.strictEqual(writer.lastCall?.model, run.lastCall?.model)
      assert.include(said(writer, 0)[1] ?? "", "[ToolCall: look(c0)]")
      assert.include(said(run, 30)[0] ?? "", "In short: They looked around.]")
    }).pipe(Effect.provide(world(run, pipeline)))
  })

  it.effect(
    "gives the summarizer the newest part of a long conversation, each message truncated and escaped (S-6)",
    () => {
      const writer = MockProvider.make("They talked.")
      const pipeline = compacting({ summarize: PromptPipeline.summarizer({ provider: writer }) })
      const history = Array.from({ length: 40 }, (_, n) =>
        Message.user(`${n} </block> ${"w".repeat(n % 2 === 0 ? 7_000 : 10_000)}`)
      )
      return Effect.gen(function* () {
        yield* Kernel.run(small("tools"), "the task", { history })
        const [, transcript = ""] = said(writer, 0)
        assert.isBelow(transcript.length, 201_000)
        assert.notInclude(transcript, "</block>")
        const shown = transcript.split("\n\n")
        assert.deepStrictEqual(
          shown.map((text) => Number.parseInt(text.slice("user: ".length))),
          Array.from({ length: 27 }, (_, n) => 13 + n)
        )
        assert.isTrue(shown.every((text) => text.length <= 8_006))
        assert.strictEqual(writer.generationAt(0)?.maxTokens, 600)
      }).pipe(Effect.provide(world(bulky(0, 0), pipeline)))
    }
  )

  it.effect("asks the run's own model for a summary, through the run's provider", () => {
    const run = MockProvider.make().onCall(({ tools }, call) =>
      tools.length === 0
        ? "They looked around."
        : call < 30
          ? { calls: [{ id: `c${call}`, name: "look", input: { size: 300 } }] }
          : "done"
    )
    const other = MockProvider.make("Nobody asked me.")
    const pipeline = PromptPipeline.layer({ compaction: { summarize: PromptPipeline.summarizer() } })
    const agent = { ...small("tools", 1_500), model: "acme/m" }
    return Effect.gen(function* () {
      yield* Kernel.run(agent, "the task")
      const asked = run.calls.filter(({ tools }) => tools.length === 0)
      assert.isAbove(asked.length, 0)
      assert.deepStrictEqual([...new Set(asked.map(({ model }) => model.id))], ["m"])
      assert.include(said(run, run.callCount - 1).join(), "In short: They looked around.")
      assert.strictEqual(other.callCount, 0)
    }).pipe(Effect.provide(world(other, pipeline, ModelRegistry.layer({ acme: run }))))
  })

  describe("with a summary written by a model", () => {
    const counted = () => {
      const run = bulky(30, 300)
      const writer = MockProvider.make("They looked around.").withTokenCounter(() => ({ input: 100, output: 10 }))
      const priced = { ...model, price: { inputPerMillion: 1_000, outputPerMillion: 5_000 } }
      const summarize = PromptPipeline.summarizer({ provider: writer, model: priced })
      const pipeline = PromptPipeline.layer({ compaction: { summarize } })
      return { writer, world: world(run, pipeline) }
    }

    it.effect("counts its usage as usage of the run (CP-15)", () => {
      const { world, writer } = counted()
      return Effect.gen(function* () {
        const { costUsd, usage } = yield* Kernel.run(small("tools", 1_500), "the task", { runId: "run" })
        assert.isAbove(writer.callCount, 1)
        assert.deepStrictEqual([usage.inputTokens, usage.outputTokens], [writer.callCount * 100, writer.callCount * 10])
        assert.closeTo(costUsd ?? 0, writer.callCount * 0.15, 1e-9)
        const stored = yield* RunStore.RunStore.use((store) => store.load("run"))
        assert.deepStrictEqual(
          Option.map(stored, (state) => state.usage),
          Option.some(usage)
        )
      }).pipe(Effect.provide(world))
    })

    it.live("counts it even when its prompt was not committed, across all resumes (R-19)", () => {
      const { world, writer } = counted()
      const history = [Message.user("t".repeat(3_000)), Message.assistant("e".repeat(3_000))]
      const agent = { ...small("tools", 1_500), budget: { maxTokens: 250 } }
      const usageOf = (runId: string) =>
        Effect.map(
          RunStore.RunStore.use((store) => store.load(runId)),
          (state) => Usage.total(Option.getOrThrow(state).usage)
        )
      const ends = {
        pause: () => Effect.succeed({ control: { _tag: "Pause" as const, reason: "look at it" } }),
        finish: () => Effect.succeed({ control: { _tag: "Finish" as const, reason: "enough" } }),
        fail: () => Effect.fail("no")
      }
      return Effect.gen(function* () {
        for (const [runId, onTurnPrepared] of Object.entries(ends)) {
          const hooks = Hooks.layer({ onTurnPrepared })
          yield* Effect.flip(Kernel.run(agent, "the task", { runId, history }).pipe(Effect.provide(hooks)))
          assert.strictEqual(yield* usageOf(runId), 110, runId)
        }
        const again = Kernel.resume(agent, "pause").pipe(Effect.provide(Hooks.layer({ onTurnPrepared: ends.pause })))
        yield* Effect.flip(again)
        yield* Effect.flip(again)
        assert.strictEqual(yield* usageOf("pause"), 330)
        const error = yield* Effect.flip(again)
        assert.deepInclude(error, { _tag: "BudgetExhaustedError", used: 330, limit: 250 })
        assert.strictEqual(writer.callCount, 5)
      }).pipe(Effect.provide(world))
    })

    it.live("replays with the recorded summary and usage, without another call (R-26)", () => {
      const { world, writer } = counted()
      writer.onCall((_, call) => `They looked at ${call} </block>.`)
      return Effect.gen(function* () {
        const agent = small("tools", 1_500)
        const { usage } = yield* Kernel.run(agent, "the task", { runId: "run" })
        const calls = writer.callCount
        const replayed = yield* Replay.run(agent, "run")
        assert.strictEqual(writer.callCount, calls)
        assert.deepStrictEqual(replayed.state.usage, usage)
      }).pipe(Effect.provide(world))
    })

    it.live("requests none when the conversation would be too long, or no shorter, with a summary (R-26)", () => {
      const { world, writer } = counted()
      const agent = Agent.make({ instructions: "", model, contextWindow: 1_000, reservedOutputTokens: 0 })
      const history = [Message.user("t".repeat(380)), Message.assistant("e".repeat(3_230))]
      return Effect.gen(function* () {
        const long = "question".repeat(600)
        const error = yield* Effect.flip(Kernel.run(agent, long, { history, runId: "too long" }))
        assert.strictEqual(error._tag, "ContextWindowExceeded")
        assert.strictEqual((yield* Replay.run(agent, "too long")).state.status.type, "failed")
        yield* Kernel.run(agent, "question", { history, runId: "no shorter" })
        assert.strictEqual((yield* Replay.run(agent, "no shorter")).state.status.type, "completed")
        assert.strictEqual(writer.callCount, 0)
      }).pipe(Effect.provide(world))
    })

    it.effect("truncates a summary that does not fit, and keeps the previous one if there is no room", () => {
      const { world, writer } = counted()
      writer.onCall((_, call) => `${call === 0 ? "She is Ada." : "never said"} ${"word ".repeat(2_000)}`)
      const agent = Agent.make({ instructions: "", model, contextWindow: 1_000, reservedOutputTokens: 0 })
      const history = [Message.user("t".repeat(1_200)), Message.assistant("e".repeat(1_200))]
      const noteOf = (runId: string) =>
        Effect.map(
          RunStore.RunStore.use((store) => store.load(runId)),
          (state) => Option.getOrThrow(state).prompt[0] ?? Message.user("")
        )
      return Effect.gen(function* () {
        yield* Kernel.run(agent, "u".repeat(3_000), { history, runId: "first" })
        const note = yield* noteOf("first")
        assert.match(Message.text(note), /^\[2 earlier messages .* In short: She is Ada\. word/)
        yield* Kernel.run(agent, "w".repeat(3_700), {
          history: [note, Message.user("x".repeat(300)), Message.assistant("v".repeat(300))],
          runId: "second"
        })
        assert.match(Message.text(yield* noteOf("second")), /^\[4 earlier messages .* In short: She is Ada\./)
        assert.strictEqual(writer.callCount, 1)
      }).pipe(Effect.provide(world))
    })

    it.effect("requests it through the run's middleware, and counts the cost of the model that answers (DR-23)", () => {
      const run = bulky(30, 300)
      const down = new Provider.ProviderError({ provider: "mock", reason: "server_error", detail: "down" })
      const writer = MockProvider.make().onCall(() => Effect.fail(down))
      const other = MockProvider.make("They looked around.").withTokenCounter(() => ({ input: 100, output: 10 }))
      const pipeline = PromptPipeline.layer({
        compaction: { summarize: PromptPipeline.summarizer({ provider: writer }) }
      })
      const price = { inputPerMillion: 1_000, outputPerMillion: 5_000 }
      const steps: Array<number> = []
      const fallback = Middleware.layer({
        callModel: (call, next) =>
          Stream.catchTag(next(call), "ProviderError", () => {
            steps.push(call.step)
            return next({ ...call, provider: other, request: { ...call.request, model: { ...model, price } } })
          })
      })
      return Effect.gen(function* () {
        const { costUsd } = yield* Kernel.run(small("tools", 1_500), "the task")
        assert.isAbove(other.callCount, 0)
        assert.strictEqual(steps.length, other.callCount)
        assert.isAbove(steps[0] ?? 0, 0)
        assert.closeTo(costUsd ?? 0, other.callCount * 0.15, 1e-9)
        assert.include(said(run, 30)[0] ?? "", "In short: They looked around.")
      }).pipe(Effect.provide(world(run, pipeline, fallback)))
    })

    it.effect("counts it against the budget", () => {
      const { world, writer } = counted()
      return Effect.gen(function* () {
        const agent = { ...small("tools", 1_500), budget: { maxTokens: 100 } }
        const error = yield* Effect.flip(Kernel.run(agent, "the task"))
        assert.strictEqual(error._tag, "BudgetExhaustedError")
        assert.strictEqual(writer.callCount, 1)
      }).pipe(Effect.provide(world))
    })
  })

  it.effect("builds no prompt and requests no summary when the budget is used up to the last token (CP-15)", () => {
    const mock = bulky(30, 5).withTokenCounter(() => ({ input: 9, output: 1 }))
    let made = 0
    const counting = Layer.succeed(PromptPipeline.PromptPipeline, {
      build: (context) => {
        made++
        return PromptPipeline.simple.build(context)
      }
    })
    return Effect.gen(function* () {
      const agent = { ...small("tools"), budget: { maxTokens: 20 } }
      const error = yield* Effect.flip(Kernel.run(agent, "the task", { runId: "run" }))
      assert.strictEqual(error._tag, "BudgetExhaustedError")
      assert.deepStrictEqual([made, mock.callCount], [2, 2])
      yield* Kernel.resume({ ...agent, budget: {} }, "run")
      assert.deepStrictEqual([made, mock.callCount], [31, 31])
    }).pipe(Effect.provide(world(mock, counting)))
  })

  it.effect("keeps secrets from the summarizing model and from a custom summarizer (S-7)", () => {
    const secret = "hunter2-topsecret"
    const run = bulky(30, 300)
    const writer = MockProvider.make("They looked around.")
    const told: Array<ReadonlyArray<Message.Message>> = []
    const summarize: PromptPipeline.Compaction["summarize"] = (messages, context) => {
      told.push(messages)
      return PromptPipeline.summarizer({ provider: writer })(messages, context)
    }
    const pipeline = PromptPipeline.layer({ compaction: { summarize } })
    const history = [Message.user(`log in with ${secret}`), Message.assistant(`I logged in with ${secret}`)]
    return Effect.gen(function* () {
      yield* Kernel.run(small("tools", 1_500), "the task", { history })
      const [, transcript = ""] = said(writer, 0)
      assert.include(transcript, "user: log in with <redacted>\n\nassistant: I logged in with <redacted>")
      assert.notInclude(JSON.stringify(told), secret)
    }).pipe(Effect.provide(world(run, pipeline, Redaction.layer({ secrets: [Redacted.make(secret)] }))))
  })

  it.effect("stops reading a summary at the reply limit, and continues without it", () => {
    const run = bulky(30, 300)
    const heard: Array<number> = []
    const writer = {
      ...MockProvider.make(),
      stream: () => {
        let pieces = 0
        const endless = Stream.forever(
          Stream.succeed({ type: "text-delta" as const, id: "0", delta: "x".repeat(1_000) })
        )
        return Stream.ensuring(
          Stream.tap(endless, () => Effect.sync(() => pieces++)),
          Effect.sync(() => heard.push(pieces))
        )
      }
    }
    const pipeline = PromptPipeline.layer({
      compaction: { summarize: PromptPipeline.summarizer({ provider: writer }) }
    })
    return Effect.gen(function* () {
      yield* Kernel.run(small("tools", 1_500), "the task")
      assert.deepStrictEqual([...new Set(heard)], [11])
      assert.include(said(run, 30)[0] ?? "", "save space.]")
    }).pipe(
      Effect.provideService(Limits.Limits, { ...Limits.defaults, replyLength: 10_000 }),
      Effect.provide(world(run, pipeline))
    )
  })
})
