/** The reports of calls in flight, which are not stored, for followers that join while the calls run. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Schema, Stream } from "effect"
import { Agent, Kernel, type Provider, type RunEvent, Skill, type StreamPart } from "kernai"
import { MockProvider } from "kernai/testing"
import { command, final } from "../support/blocks.ts"
import { kernel } from "../support/kernel.ts"

const settle = Effect.repeat(Effect.yieldNow, { times: 200 })

/** Follows a run in a fiber from its beginning. */
const follow = (runId: string) =>
  Effect.gen(function* () {
    const heard: Array<RunEvent.RunEvent> = []
    const events = Stream.runForEach(Kernel.follow(runId), (event) => Effect.sync(() => heard.push(event)))
    const fiber = yield* Effect.forkChild(events, { startImmediately: true })
    return { heard, fiber }
  })

const reportsIn = (events: ReadonlyArray<RunEvent.RunEvent>) =>
  events.flatMap((event) => (event.type === "skill_progress" ? [event.progress ?? event.output] : []))

describe("a follower that joins a run while a call is in flight", () => {
  it.effect("receives the latest report of each kind, although nobody listened when it was made", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const draft = Skill.make("draft", {
        description: "Drafts",
        input: Schema.Struct({}),
        effects: "read",
        execute: Effect.fnUntraced(function* (_, { preliminary, progress }) {
          yield* progress({ done: 1 })
          yield* progress({ done: 2 })
          yield* preliminary("Dear")
          yield* preliminary("Dear Eva")
          yield* Deferred.await(gate)
          return "Dear Eva, hello."
        })
      })
      const agent = Agent.make({ instructions: "", model: "m", skills: [draft] })
      const provider = MockProvider.make(command("draft", {}), final("done"))
      const run = yield* Effect.forkChild(Kernel.run(agent, "?", { provider, runId: "r" }))
      yield* settle
      const { fiber, heard } = yield* follow("r")
      yield* settle
      assert.deepStrictEqual(reportsIn(heard), [{ done: 2 }, "Dear Eva"])
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(run)
      yield* Fiber.join(fiber)
      const late = yield* follow("r")
      yield* Fiber.join(late.fiber)
      assert.deepStrictEqual(reportsIn(late.heard), [])
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("receives the input of a native call that is being written", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const provider: Provider.ProviderShape = {
        name: "scripted",
        stream: () =>
          Stream.concat(
            Stream.make<[StreamPart.StreamPart, StreamPart.StreamPart, StreamPart.StreamPart]>(
              { type: "tool-params-start", id: "a", name: "draft" },
              { type: "tool-params-delta", id: "a", delta: `{"to":` },
              { type: "tool-params-delta", id: "a", delta: `"E` }
            ),
            Stream.drain(Stream.fromEffect(Deferred.await(gate)))
          )
      }
      const agent = Agent.make({ instructions: "", model: "m", dialect: "tools" })
      const run = yield* Effect.forkChild(Effect.exit(Kernel.run(agent, "?", { provider, runId: "r" })))
      yield* settle
      const { fiber, heard } = yield* follow("r")
      yield* settle
      const parts = heard.flatMap((event) => (event.type === "stream_part" ? [event.part] : []))
      assert.deepStrictEqual(parts, [
        { type: "tool-params-start", id: "a", name: "draft" },
        { type: "tool-params-delta", id: "a", delta: `{"to":"E` }
      ])
      yield* Fiber.interrupt(run)
      yield* Fiber.interrupt(fiber)
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("receives the start of an agent that is at work, and none of an agent that has ended", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const wait = Skill.make("wait", {
        description: "Waits",
        input: Schema.Struct({}),
        effects: "read",
        execute: () => Deferred.await(gate)
      })
      const helper = Agent.make({ name: "helper", instructions: "", model: "m", skills: [wait] })
      const boss = Agent.make({ name: "boss", instructions: "", model: "m", skills: [], agents: [helper] })
      const provider = MockProvider.make(
        command("helper", { input: "first" }),
        final("one"),
        command("helper", { input: "second" }),
        command("wait", {}),
        final("two"),
        final("done")
      )
      const run = yield* Effect.forkChild(Kernel.run(boss, "?", { provider, runId: "r" }))
      yield* settle
      const { fiber, heard } = yield* follow("r")
      yield* settle
      const started = heard.flatMap((event) => (event.type === "task_start" ? [event.input] : []))
      assert.deepStrictEqual(started, [{ input: "second" }])
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(run)
      yield* Fiber.join(fiber)
    }).pipe(Effect.provide(kernel()))
  )
})
