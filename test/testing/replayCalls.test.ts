/** The events of skills in a replay. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema, Stream } from "effect"
import { Agent, Kernel, type RunEvent, Skill } from "kernai"
import { MockProvider, Replay } from "kernai/testing"
import { command, final } from "../support/blocks.ts"
import { kernel } from "../support/kernel.ts"
import { plan } from "../support/workflow.ts"

const skill = (name: string, effects: "read" | "write", result: Effect.Effect<unknown, unknown>) =>
  Skill.make(name, { description: name, effects, input: Schema.Struct({ n: Schema.Finite }), execute: () => result })

const skills = [
  skill("look", "read", Effect.succeed({ found: 2 })),
  skill("pay", "write", Effect.succeed("paid")),
  skill("fail", "write", Effect.fail({ message: "no money" }))
]

const agent = Agent.make({ name: "clerk", instructions: "", model: "m", skills })

const callsIn = (events: ReadonlyArray<RunEvent.RunEvent>) =>
  events.flatMap((event) =>
    event.type === "skill_execute" || event.type === "skill_result" || event.type === "skill_error"
      ? [JSON.parse(JSON.stringify({ ...event, at: 0, durationMs: 0 }))]
      : []
  )

/** Runs an agent with these replies, and returns the events of its skills, live and replayed. */
const twice = (...replies: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const provider = MockProvider.make().respondWith(...replies)
    const live = yield* Stream.runCollect(Kernel.stream(agent, "go", { runId: "r", provider }))
    const { events } = yield* Replay.run(agent, "r")
    return { live: callsIn(live), replayed: callsIn(events) }
  }).pipe(Effect.provide(kernel()))

describe("Replay.run", () => {
  it.effect("emits the calls of read and write skills, with their results and failures", () =>
    Effect.gen(function* () {
      const calls = [command("look", { n: 1 }), command("pay", { n: 2 }), command("fail", { n: 3 }), command("gone")]
      const { live, replayed } = yield* twice(calls.join("\n"), final("done"))
      assert.strictEqual(live.length, 7)
      assert.deepStrictEqual(replayed, live)
    })
  )

  it.effect("emits the calls of tasks", () =>
    Effect.gen(function* () {
      const { live, replayed } = yield* twice(plan(["a"]), command("pay", { n: 1 }), final("paid"), final("done"))
      assert.strictEqual(live.length, 2)
      assert.deepStrictEqual(replayed, live)
    })
  )
})
