import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Option, Queue, Schema, Stream } from "effect"
import { Agent, Hooks, Kernel, Limits, Media, MediaStore, type RunState, RunStore, Skill } from "kernai"
import { MockProvider, Replay } from "kernai/testing"
import { kernel, of } from "../support/kernel.ts"
import { told } from "../support/toolbox.ts"
import { final } from "../support/blocks.ts"

const command = '<block type="command" name="work">{}</block>'
const agent = Agent.make({ instructions: "Work.", model: "m", skills: "all" })

/** A skill during which the test may do something. */
const work = (body: Effect.Effect<unknown>) =>
  Skill.make("work", {
    description: "Works",
    input: Schema.Struct({}),
    effects: "read",
    execute: () => Effect.as(body, "worked")
  })

const texts = (
  messages: ReadonlyArray<{ readonly role: string; readonly content: ReadonlyArray<unknown> }> | undefined
) => (messages ?? []).map(({ content, role }) => `${role}: ${JSON.stringify(content)}`)

describe("steering", () => {
  it.effect("is read before the next turn, in the order it was offered, and is part of the run", () =>
    Effect.gen(function* () {
      const steering = yield* Queue.unbounded<Kernel.Input>()
      const layer = kernel(
        work(Queue.offerAll(steering, ["Only Rome.", ["And", Media.fromBytes(new Uint8Array([1]), "image/png")]]))
      )
      yield* Effect.gen(function* () {
        const provider = MockProvider.make(command, final("Rome"))
        const run = yield* told(agent, "Which city?", { provider, steering, runId: "r" })
        assert.strictEqual(run.text, "Rome")
        const asked = texts(provider.messagesAt(1))
        assert.lengthOf(asked, 6)
        assert.include(asked[3], "worked")
        assert.include(asked[4], "Only Rome.")
        assert.include(asked[5], '"type":"image"')
        const done = of(run.events, "run_completed")[0]?.result
        assert.deepStrictEqual(
          done?.messages.map((message) => message.role),
          ["user", "assistant", "user", "user", "user", "assistant"]
        )
        const stored = yield* RunStore.RunStore.use((store) => store.load("r"))
        const turns = Option.getOrThrow(stored).turns
        assert.lengthOf(turns[1]?.steering ?? [], 2)
      }).pipe(Effect.provide(layer))
    })
  )

  it.effect("gives a run whose answer is ready another turn, and does not reach children", () =>
    Effect.gen(function* () {
      const steering = yield* Queue.unbounded<Kernel.Input>()
      const provider = MockProvider.make().onCall((_, call) => {
        if (call === 0) Queue.offerUnsafe(steering, "In one word!")
        return call === 0 ? final("A long answer") : final("Short")
      })
      const run = yield* told(agent, "Explain.", { provider, steering })
      assert.strictEqual(run.text, "Short")
      assert.deepStrictEqual(
        of(run.events, "final").map((event) => event.text),
        ["A long answer", "Short"]
      )
      assert.strictEqual(of(run.events, "run_completed")[0]?.result?.turns, 2)

      const plan = '<block type="plan">{"goal":"g","tasks":[{"id":"a","input":"do"}]}</block>'
      const heard: Array<string> = []
      const children = MockProvider.make().onCall((request) => {
        const last = texts(request.messages).at(-1) ?? ""
        heard.push(last)
        if (request.messages.length === 2 && last.includes("start"))
          return Effect.as(Queue.offer(steering, "hurry"), plan)
        return final("ok")
      })
      yield* told(agent, "start", { provider: children, steering })
      assert.include(heard[1], "do")
      assert.notInclude(heard[1], "hurry")
      assert.include(heard[2], "hurry")
    }).pipe(Effect.provide(kernel(work(Effect.void))))
  )

  it.effect("does not replace the answer of the last allowed turn, and waits for another run (DR-20)", () =>
    Effect.gen(function* () {
      const steering = yield* Queue.unbounded<Kernel.Input>()
      const provider = MockProvider.make(command, final("Rome")).onCall((_, call) => {
        if (call === 1) Queue.offerUnsafe(steering, "And hurry!")
        return undefined
      })
      const few = Agent.make({ instructions: "Work.", model: "m", skills: "all", maxSteps: 2 })
      const run = yield* told(few, "Which city?", { provider, steering })
      assert.strictEqual(run.failure, undefined)
      assert.strictEqual(run.text, "Rome")
      assert.strictEqual(yield* Queue.size(steering), 1)
    }).pipe(Effect.provide(kernel(work(Effect.void))))
  )

  it.effect("is not lost when a run is interrupted and resumed, nor when its turn is prepared again (DR-19)", () =>
    Effect.gen(function* () {
      const steering = yield* Queue.unbounded<Kernel.Input>()
      const layer = kernel(work(Queue.offer(steering, "Only Rome.")))
      yield* Effect.gen(function* () {
        const asking = yield* Deferred.make<void>()
        const cut = MockProvider.make().onCall((_, call) =>
          call === 0 ? command : Effect.andThen(Deferred.succeed(asking, undefined), Effect.never)
        )
        const fiber = yield* Effect.forkChild(Kernel.run(agent, "Which city?", { provider: cut, steering, runId: "r" }))
        yield* Deferred.await(asking)
        yield* Fiber.interrupt(fiber)
        assert.strictEqual(yield* Queue.size(steering), 0)
        yield* Queue.offer(steering, "Quickly.")
        const provider = MockProvider.make(command, final("Rome"))
        const result = yield* Kernel.resume(agent, "r", { provider, steering, rewind: true })
        assert.strictEqual(result.text, "Rome")
        assert.include(texts(provider.messagesAt(0)).at(-1), "Only Rome.")
        assert.include(texts(provider.messagesAt(1)).join(), "Quickly.")
        assert.strictEqual(texts(result.messages).filter((text) => text.includes("Only Rome.")).length, 2)
      }).pipe(Effect.provide(layer))
    })
  )

  it.effect("is replayed with the run, without a queue (R-26)", () =>
    Effect.gen(function* () {
      const steering = yield* Queue.unbounded<Kernel.Input>()
      yield* Effect.gen(function* () {
        const provider = MockProvider.make(command, final("A"), final("B")).onCall((_, call) => {
          if (call === 1) Queue.offerUnsafe(steering, "Another!")
          return undefined
        })
        yield* Kernel.run(agent, "?", { provider, steering, runId: "r" })
        const replayed = yield* Replay.run(agent, "r")
        assert.strictEqual(replayed.state.turns.length, 3)
        assert.lengthOf(replayed.state.turns[2]?.steering ?? [], 1)
      }).pipe(Effect.provide(kernel(work(Queue.offer(steering, "More.")))))
    })
  )

  it.effect("stays in the queue and stops the run with the reason when its media cannot be stored (R-1)", () =>
    Effect.gen(function* () {
      const steering = yield* Queue.unbounded<Kernel.Input>()
      const image = Media.fromBytes(new Uint8Array(64), "image/png")
      yield* Effect.gen(function* () {
        const provider = MockProvider.make(command, final("Rome"))
        const few = Effect.provideService(
          told(agent, "Which city?", { provider, steering, runId: "r" }),
          Limits.Limits,
          { ...Limits.defaults, mediaBytes: 16 }
        )
        const run = yield* few
        assert.strictEqual(run.failure?._tag, "LimitExceeded")
        // What was said before it is part of the run, and nothing after it is lost.
        assert.include(texts(provider.messagesAt(1)).at(-1), "Only Rome.")
        assert.deepStrictEqual(
          of(run.events, "run_failed").map(({ error }) => error.tag),
          ["LimitExceeded"]
        )
        assert.strictEqual(yield* Queue.size(steering), 2)
        const again = MockProvider.make(final("Napoli"))
        const result = yield* Kernel.resume(agent, "r", { provider: again, steering })
        assert.strictEqual(result.text, "Napoli")
        const [seen, later] = texts(again.messagesAt(0)).slice(-2)
        assert.include(seen, '"type":"image"')
        assert.include(later, "Later.")
        assert.strictEqual(texts(result.messages).filter((text) => text.includes("Only Rome.")).length, 1)
        assert.strictEqual(yield* Queue.size(steering), 0)
      }).pipe(Effect.provide(kernel(work(Queue.offerAll(steering, ["Only Rome.", image, "Later."])))))
    })
  )

  it.effect(
    "does not cancel a turn that a hook requested when its media cannot be stored: a resume runs that turn (DR-10)",
    () =>
      Effect.gen(function* () {
        const steering = yield* Queue.unbounded<Kernel.Input>()
        const provider = MockProvider.make(final("first"), final("second")).onCall((_, call) => {
          if (call === 0) Queue.offerUnsafe(steering, Media.fromBytes(new Uint8Array(64), "image/png"))
          return undefined
        })
        const asksForMore = Hooks.layer({
          onTurnCompleted: ({ state }) =>
            Effect.succeed(state.turns.length === 1 ? { control: { _tag: "Continue" } } : undefined)
        })
        const few = Layer.succeed(Limits.Limits, { ...Limits.defaults, mediaBytes: 16 })
        const failure = yield* Kernel.run(agent, "?", { provider, steering, runId: "r" }).pipe(
          Effect.flip,
          Effect.provide([few, asksForMore])
        )
        assert.strictEqual(failure._tag, "LimitExceeded")
        const result = yield* Effect.provide(Kernel.resume(agent, "r", { provider }), asksForMore)
        assert.strictEqual(result.text, "second")
      }).pipe(Effect.provide(kernel()))
  )

  for (const [how, kept] of [
    ["before it has it", false],
    ["though it has it", true]
  ] as const) {
    it.effect(`is read once when the store fails ${how}, and the run continues (R-1)`, () =>
      Effect.gen(function* () {
        const steering = yield* Queue.unbounded<Kernel.Input>()
        const full = new RunStore.StoreError({ operation: "commit", reason: "limit_exceeded", detail: "full" })
        yield* Effect.gen(function* () {
          const store = yield* RunStore.RunStore
          const broken: RunStore.RunStoreShape = {
            ...store,
            append: (records, state) =>
              records.some(({ events }) => events.some((event) => "steering" in event))
                ? Effect.andThen(kept ? store.append(records, state) : Effect.void, Effect.fail(full))
                : store.append(records, state)
          }
          const onBroken = Layer.fresh(Kernel.layerNoProvider).pipe(
            Layer.provide(Layer.succeed(RunStore.RunStore, broken))
          )
          const provider = MockProvider.make(command)
          const error = yield* Kernel.run(agent, "Which city?", { provider, steering, runId: "r" }).pipe(
            Effect.flip,
            Effect.provide(onBroken)
          )
          assert.deepStrictEqual(error, full)
          assert.strictEqual(yield* Queue.size(steering), kept ? 0 : 2)
          const again = MockProvider.make(final("Rome"))
          const result = yield* Kernel.resume(agent, "r", { provider: again, steering })
          assert.strictEqual(result.text, "Rome")
          const said = texts(result.messages).filter((text) => /Only Rome|Quickly/.test(text))
          assert.lengthOf(said, 2)
          assert.include(said[0], "Only Rome.")
          assert.strictEqual(yield* Queue.size(steering), 0)
        }).pipe(Effect.provide(kernel(work(Queue.offerAll(steering, ["Only Rome.", "Quickly."])))))
      })
    )
  }

  it.effect("does not delay the interruption of a run while its media are stored (R-15)", () =>
    Effect.gen(function* () {
      const steering = yield* Queue.unbounded<Kernel.Input>()
      const storing = yield* Deferred.make<void>()
      const slow = Layer.effect(
        MediaStore.MediaStore,
        Effect.map(MediaStore.MediaStore, (store) => ({
          ...store,
          run: (root: string, origins?: ReadonlyArray<string>) =>
            Effect.map(store.run(root, origins), (own) => ({
              ...own,
              admit: (parts: Parameters<typeof own.admit>[0]) =>
                parts[0] === "Only Rome."
                  ? Effect.andThen(Deferred.succeed(storing, undefined), Effect.never)
                  : own.admit(parts)
            }))
        }))
      )
      yield* Effect.gen(function* () {
        const provider = MockProvider.make(command)
        const fiber = yield* Effect.forkChild(
          Effect.provide(
            Kernel.run(agent, "?", { provider, steering }),
            Layer.fresh(Kernel.layerNoProvider).pipe(Layer.provide(slow))
          )
        )
        yield* Deferred.await(storing)
        yield* Fiber.interrupt(fiber)
        assert.strictEqual(yield* Queue.size(steering), 1)
      }).pipe(Effect.provide(kernel(work(Queue.offer(steering, "Only Rome.")))))
    })
  )

  it.effect("may end its queue, and the run continues without it", () =>
    Effect.gen(function* () {
      const steering = yield* Queue.make<Kernel.Input, string>()
      yield* Queue.fail(steering, "over")
      const result = yield* Kernel.run(agent, "?", { provider: MockProvider.make(final("done")), steering })
      assert.strictEqual(result.text, "done")
    }).pipe(Effect.provide(kernel()))
  )
})

describe("the result of a run (AC-21)", () => {
  it.effect("contains the last message and the calls that a resume repeated or resolved", () =>
    Effect.gen(function* () {
      const entered = yield* Deferred.make<void>()
      let calls = 0
      const layer = kernel(
        work(
          Effect.suspend(() =>
            ++calls === 2 ? Effect.andThen(Deferred.succeed(entered, undefined), Effect.never) : Effect.void
          )
        )
      )
      yield* Effect.gen(function* () {
        const provider = MockProvider.make(command + command + command, final("done"))
        const fiber = yield* Effect.forkChild(Kernel.run(agent, "?", { provider, runId: "r" }))
        yield* Deferred.await(entered)
        yield* Fiber.interrupt(fiber)
        const result = yield* Kernel.resume(agent, "r", { provider })
        assert.strictEqual(result.status, "completed")
        assert.deepStrictEqual(
          result.calls.map((call) => call.recovered),
          [false, true, false]
        )
        assert.deepStrictEqual(result.finalMessage?.content, [{ type: "text", text: final("done") }])
        // The same is computed from the journal by whoever reads it later.
        const again = yield* Kernel.resume(agent, "r", { provider })
        assert.deepStrictEqual(again.calls, result.calls)
      }).pipe(Effect.provide(layer))
    })
  )

  it.effect("is the same for a run that was interrupted anywhere as for an undisturbed one", () => {
    const count = Skill.make("count", {
      description: "",
      input: Schema.Struct({ n: Schema.Int }),
      effects: "idempotent",
      execute: ({ n }) => (n > 1 ? Effect.fail("no more") : Effect.succeed(`${n}`))
    })
    const call = (n: number) => `<block type="command" name="count">{"n":${n}}</block>`
    const replies = [`Think. ${call(1)}${call(2)}`, '<block type="plan">hm</block>', call(1), final("done")]
    const provider = MockProvider.make()
      .onCall(({ messages }) => replies[messages.filter(({ role }) => role === "assistant").length])
      .withTokenCounter((messages, content) => ({ input: messages.length, output: content.length }))
    /** What does not depend on when the run was made, and under which name. */
    const plain = ({ messages, perTurnUsage, calls: made, ...rest }: RunState.RunResult) => {
      const calls = made.map((call) => ({ ...call, durationMs: undefined, recovered: undefined }))
      const text = JSON.stringify({ ...rest, messages, perTurnUsage, calls })
      return text.replaceAll(rest.runId, "run")
    }
    return Effect.gen(function* () {
      const calm = yield* Kernel.run(agent, "?", { provider, runId: "calm" })
      assert.deepInclude(calm, {
        status: "completed",
        turns: 4,
        finishReason: "stop",
        unreportedTurns: 0,
        text: "done"
      })
      assert.deepStrictEqual(
        calm.perTurnUsage.map((usage) => usage?.outputTokens),
        replies.map((reply) => reply.length)
      )
      assert.strictEqual(calm.usage.outputTokens, replies.join("").length)
      assert.deepStrictEqual(
        calm.calls.map(({ input, isError, name, turn }) => [name, input, isError, turn]),
        [
          ["count", { n: 1 }, false, 1],
          ["count", { n: 2 }, true, 1],
          ["count", { n: 1 }, false, 3]
        ]
      )
      assert.isString(calm.calls[1]?.error)
      const events = yield* Stream.runCollect(Kernel.stream(agent, "?", { provider, runId: "seen" }))
      for (let cut = 1; cut < events.length; cut++) {
        const runId = `cut-${cut}`
        yield* Stream.runDrain(Stream.take(Kernel.stream(agent, "?", { provider, runId }), cut))
        assert.strictEqual(plain(yield* Kernel.resume(agent, runId, { provider })), plain(calm), runId)
      }
    }).pipe(Effect.provide(kernel(count)))
  })
})
