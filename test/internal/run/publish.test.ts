import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Kernel, type RunEvent, Skill } from "kernai"
import { MockProvider } from "kernai/testing"
import { command, final } from "../../support/blocks.ts"
import { kernel, of } from "../../support/kernel.ts"

const Percent = Schema.Struct({ percent: Schema.Number })

const play = (skill: Skill.AnySkill) =>
  Effect.gen(function* () {
    const agent = Agent.make({ instructions: "", model: "m", skills: [skill] })
    const provider = MockProvider.make(command(skill.name), final("done"))
    const heard: Array<RunEvent.RunEvent> = []
    const run = yield* Effect.forkChild(
      Stream.runForEach(Kernel.stream(agent, "?", { provider }), (event) => Effect.sync(() => heard.push(event)))
    )
    yield* TestClock.adjust("10 seconds")
    yield* Fiber.join(run)
    return heard
  }).pipe(Effect.provide(kernel(skill)))

describe("a skill that reports", () => {
  it.effect("emits its latest progress at most every 100 milliseconds, and the last one before its result", () => {
    const skill = Skill.make("load", {
      description: "Loads",
      input: Schema.Struct({}),
      progress: Percent,
      execute: Effect.fnUntraced(function* (_, { progress }) {
        for (let percent = 0; percent < 25; percent++) {
          yield* progress({ percent })
          yield* Effect.sleep("10 millis")
        }
        yield* progress({ percent: 100 })
        return "loaded"
      })
    })
    return Effect.gen(function* () {
      const events = yield* play(skill)
      const percents = of(events, "skill_progress").map(({ progress }) => progress)
      assert.deepStrictEqual(
        percents,
        [0, 9, 19, 100].map((percent) => ({ percent }))
      )
      const types = events.map(({ type }) => type)
      assert.isBelow(types.lastIndexOf("skill_progress"), types.indexOf("skill_result"))
      assert.isAbove(types.indexOf("skill_progress"), types.indexOf("skill_execute"))
    })
  })

  it.effect("emits its last progress without waiting for another report", () => {
    const skill = Skill.make("load", {
      description: "Loads",
      input: Schema.Struct({}),
      execute: Effect.fnUntraced(function* (_, { progress }) {
        yield* progress("begun")
        yield* progress("half done")
        yield* Effect.sleep("5 seconds")
        return "loaded"
      })
    })
    return Effect.gen(function* () {
      const [first, second] = of(yield* play(skill), "skill_progress")
      assert.strictEqual(second?.progress, "half done")
      assert.strictEqual((second?.at ?? 0) - (first?.at ?? 0), 100)
    })
  })

  it.effect("emits preliminary results beside its progress, and nothing after its result", () => {
    let late: Effect.Effect<void> = Effect.void
    const skill = Skill.dynamic("load", {
      description: "Loads",
      inputSchema: { type: "object" },
      execute: Effect.fnUntraced(function* (_, { preliminary, progress }) {
        yield* progress(1)
        yield* preliminary({ rows: [1] })
        yield* preliminary({ rows: [1, 2] })
        late = progress("too late")
        return { rows: [1, 2, 3] }
      })
    })
    return Effect.gen(function* () {
      const events = yield* play(skill)
      assert.deepStrictEqual(
        of(events, "skill_progress").flatMap(({ progress }) => progress ?? []),
        [1]
      )
      assert.deepStrictEqual(of(events, "skill_progress").findLast(({ output }) => output !== undefined)?.output, {
        rows: [1, 2]
      })
      const count = events.length
      yield* late
      assert.strictEqual(events.length, count)
    })
  })

  it.effect("may report progress outside a run", () =>
    Effect.gen(function* () {
      const skill = Skill.make("load", {
        description: "Loads",
        input: Schema.Struct({}),
        execute: (_, { progress }) => Effect.as(progress(1), "loaded")
      })
      const scope = {
        runId: "r",
        rootRunId: "r",
        callId: "c",
        idempotencyKey: "k",
        step: 0,
        depth: 0,
        taskId: undefined
      }
      assert.strictEqual(yield* skill.call({}, { ...scope, runContext: null }), "loaded")
    })
  )
})
