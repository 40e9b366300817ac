import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Kernel, Limits, Recorder, type RunEvent, Skill } from "kernai"
import { MockProvider } from "kernai/testing"
import { final } from "../support/blocks.ts"
import { kernel } from "../support/kernel.ts"
import { act, agent, echo, told } from "../support/echo.ts"

describe("the stream", () => {
  it.effect("emits text in pieces of bounded length, however a provider delivers it", () =>
    Effect.gen(function* () {
      const text = "😀".repeat(10_001)
      const { events } = yield* told(agent, [`x${text}${final(`y${text}`)}`])
      for (const type of ["text_chunk", "block_content"] as const) {
        const pieces = events.flatMap((event) => (event.type === type ? [event.text] : []))
        assert.strictEqual(pieces.join(""), `${type === "text_chunk" ? "x" : "y"}${text}`)
        for (const piece of pieces) assert.isTrue(piece.length <= 4_096 && piece.isWellFormed())
      }
    }).pipe(Effect.provide(kernel(echo)))
  )

  it.effect("emits the same events in the same order to every subscriber, each with its scope (R-23, BP-95)", () =>
    Effect.gen(function* () {
      const heard: Array<RunEvent.RunEvent> = []
      const { events } = yield* told(agent, [act("x"), final("ok")], { runId: "r" }).pipe(
        Effect.provideService(Recorder.Recorder, { record: (event) => heard.push(event) }),
        Effect.provide(kernel(echo))
      )
      assert.deepStrictEqual(events, heard)
      assert.isTrue(events.every((event) => event.runId === "r" && event.rootRunId === "r" && event.depth === 0))
      assert.deepStrictEqual([...new Set(events.map((event) => event.step))], [0, 1])
    })
  )

  it.effect("drops stream parts for a slow consumer, never phases (R-23)", () =>
    Effect.gen(function* () {
      const events: Array<RunEvent.RunEvent> = []
      const late = Kernel.stream(agent, "go", { provider: MockProvider.make(final("x".repeat(5000))) }).pipe(
        Stream.runForEach((event) =>
          Effect.andThen(
            Effect.sleep("1 millis"),
            Effect.sync(() => events.push(event))
          )
        ),
        Effect.provideService(Limits.Limits, { ...Limits.defaults, liveEvents: 16 })
      )
      const fiber = yield* Effect.forkChild(late)
      while (fiber.pollUnsafe() === undefined) yield* TestClock.adjust("1 millis")
      const phases = events.flatMap((event) => ("revision" in event ? [event.revision] : []))
      assert.deepStrictEqual(phases, [1, 2, 3, 4, 5, 6, 7])
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("keeps a Redacted key out of all its events (S-7)", () =>
    Effect.gen(function* () {
      const key = Redacted.make("hunter2-hunter2")
      const sees = Skill.make("sees", {
        description: "",
        input: Schema.String,
        execute: () => Effect.succeed({ key: String(key) })
      })
      const { events } = yield* told(agent, ['<block type="command" name="sees">x</block>', final("ok")]).pipe(
        Effect.provide(kernel(sees))
      )
      assert.notInclude(JSON.stringify(events), "hunter2")
    })
  )
})
