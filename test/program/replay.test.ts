import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Layer, Random, Schema } from "effect"
import { TestClock } from "effect/testing"
import { Kernel, Program, Skill } from "kernai"
import { MockProvider, Replay } from "kernai/testing"
import { kernel } from "../support/kernel.ts"
import { call, native, voices } from "../support/team.ts"
import { stored } from "../support/workflow.ts"

/** A program that pays a random amount, and reads the time of its payment. */
const office = (send: Effect.Effect<string>, more: number) => {
  const pay = Skill.make("pay", {
    description: "Pays",
    input: Schema.Struct({ amount: Schema.Finite }),
    execute: ({ amount }) => Effect.as(send, amount)
  })
  return Program.make("office", {
    output: Schema.String,
    skills: [pay],
    run: Effect.fnUntraced(function* () {
      const amount = yield* Random.nextIntBetween(1, 1_000)
      yield* Program.confirm(`Pay ${amount}?`)
      yield* Program.sleep("3 days")
      const paid = yield* Program.call(pay, { amount: amount + more })
      const letter = yield* Program.step("write", send)
      return `${paid} ${letter} ${yield* Clock.currentTimeMillis}`
    })
  })
}

it.effect("a recorded program is replayed without its skills and its steps, and a changed one names its call", () =>
  Effect.gen(function* () {
    const recorded = office(Effect.succeed("sent"), 0)
    yield* Effect.flip(Kernel.run(recorded, "go", { runId: "run" }))
    const [question] = yield* Kernel.questions("run")
    const answers = [{ callId: question?.callId ?? "", approved: true }]
    yield* Effect.flip(Kernel.resume(recorded, "run", { answers }))
    yield* TestClock.adjust("3 days")
    const { output } = yield* Kernel.resume(recorded, "run")
    const closed = Effect.die(new Error("a skill or a step ran"))
    const { lives, state } = yield* Replay.run(office(closed, 0), "run")
    assert.deepStrictEqual([lives, state.turns.at(-1)?.message?.content], [3, [{ type: "text", text: output }]])
    const changed = yield* Effect.flip(Replay.run(office(closed, 1), "run"))
    if (changed._tag !== "ReplayDiverged") return assert.fail(changed._tag)
    assert.match(changed.actual, /^model_completed of step 2, .*amount/)
  }).pipe(Effect.provide(Layer.provideMerge(kernel(), MockProvider.layer())))
)

/** A program that asks a person. */
const twice = Program.make("twice", {
  background: true,
  input: Schema.Struct({ text: Schema.String }),
  run: Effect.fnUntraced(function* ({ text }) {
    yield* Program.confirm(`Double ${text}?`)
    return yield* Program.step("double", Effect.succeed(text + text))
  })
})

const outer = Program.make("outer", { agents: [twice], run: (text) => Program.ask(twice, { text }) })

describe("a run with programs inside of it is replayed in each of its processes", () => {
  const desk = native("desk", { agents: [twice, outer] })
  const cases: ReadonlyArray<readonly [title: string, input: object, called: string, replies: ReadonlyArray<string>]> =
    [
      ["an agent that calls a program", { text: "a" }, "twice", ["aa"]],
      ["an agent that calls a program in the background", { text: "a", background: true }, "twice", ["I wait.", "aa"]],
      ["an agent that calls a program that calls a program", { input: "a" }, "outer", ["aa"]]
    ]
  for (const [title, input, called, replies] of cases) {
    it.effect(title, () =>
      Effect.gen(function* () {
        const { provider } = voices({ desk: [call(called, input), ...replies] })
        yield* Effect.flip(Kernel.run(desk, "go", { runId: "run", provider }))
        const answers = (yield* Kernel.questions("run")).map(({ callId }) => ({ callId, approved: true }))
        const { text } = yield* Kernel.resume(desk, "run", { answers, provider })
        const { lives, state } = yield* Replay.run(desk, "run")
        assert.deepStrictEqual([text, lives], ["aa", 2])
        assert.deepStrictEqual(state.turns, (yield* stored("run")).turns)
      }).pipe(Effect.provide(kernel()))
    )
  }
})
