import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Skill } from "kernai"
import * as Recordings from "../../src/cli/demo/recordings.ts"
import * as Skills from "../../src/cli/demo/skills.ts"
import { replay } from "../../src/cli/replayModel.ts"
import { memoryScreen } from "./support.ts"

const standard = Recordings.open(Recordings.standard, ".")

describe("a recorded conversation", () => {
  it.live.each(Recordings.bundled.map(({ name }) => name))("%s is played to its recorded answer", (name) =>
    Effect.gen(function* () {
      const screen = memoryScreen()
      const recording = yield* Recordings.open(name, ".")
      const result = yield* Effect.provide(replay(recording, { form: "quiet" }), screen.layer)
      assert.strictEqual(result.text.trim(), recording.answer?.trim())
      assert.strictEqual(screen.out(), `${recording.answer?.trim()}\n`)
      assert.strictEqual(screen.progress(), "")
    })
  )

  it.live("is shown with its turns, blocks, calls and tokens, and the answer at the end", () =>
    Effect.gen(function* () {
      const screen = memoryScreen()
      const recording = yield* standard
      yield* Effect.provide(replay(recording, { form: "text" }), screen.layer)
      const lines = screen.progress().split("\n")
      assert.deepStrictEqual(
        lines
          .filter((line) => /^(turn|answer)|^ {2}(plan|command|final|skill|!)/.test(line))
          .map((line) => line.trim().split(/ +/, 2)),
        [
          ["turn", "1"],
          ["plan", "I"],
          ["command", "user_database"],
          ...Array.from({ length: 4 }, () => ["command", "calculator"]),
          ["final", "Based"],
          ["!", "final"],
          ["skill", "user_database"],
          ...Array.from({ length: 4 }, () => ["skill", "calculator"]),
          ["turn", "2"],
          ["final", "Based"],
          ["answer", "2"]
        ]
      )
      assert.include(screen.progress(), "416 tokens in, 307 out")
      assert.include(screen.progress(), "2 turns, 5 calls, 1445 tokens in, 392 out")
      assert.strictEqual(screen.out().trim(), recording.answer?.trim())
    })
  )

  it.live("prints one JSON object with the result", () =>
    Effect.gen(function* () {
      const screen = memoryScreen()
      const result = yield* Effect.provide(replay(yield* standard, { form: "json" }), screen.layer)
      const told = JSON.parse(screen.out())
      assert.deepInclude(told, { ok: true, runId: result.runId, text: result.text, usage: result.usage, turns: 2 })
      assert.strictEqual(screen.progress(), "")
    })
  )

  it.live("prints every event as a JSON line, from the start to the result", () =>
    Effect.gen(function* () {
      const screen = memoryScreen()
      yield* Effect.provide(replay(yield* standard, { form: "events" }), screen.layer)
      const events = screen
        .out()
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line))
      assert.strictEqual(events[0].type, "run_started")
      assert.strictEqual(events.at(-1).type, "run_completed")
      assert.strictEqual(events.filter((event) => event.type === "skill_result").length, 5)
    })
  )

  it.live("fails at the first difference when one skill gives another result", () =>
    Effect.gen(function* () {
      const screen = memoryScreen()
      const calculator = Skill.make("calculator", {
        description: "Works out sums, wrongly",
        input: Schema.Struct({ expression: Schema.String }),
        effects: "read",
        execute: ({ expression }) => Effect.succeed(expression === "2.0 / 5" ? "0.41" : "5")
      })
      const error = yield* Effect.flip(
        Effect.provide(
          replay(yield* standard, { form: "json", skills: [Skills.userDatabase, calculator] }),
          screen.layer
        )
      )
      assert.deepInclude(error, {
        code: 1,
        reason: 'anthropic: request 1 differs from the recording: message 4, result: expected "2", got "5"'
      })
      assert.strictEqual(screen.out(), "")
    })
  )

  it.live("fails when the answer is not the recorded one", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(
        Effect.provide(replay({ ...(yield* standard), answer: "41%" }, { form: "quiet" }), memoryScreen().layer)
      )
      assert.match(error.message, /^the answer is not the recorded one: expected "41%", got "Based on/)
    })
  )

  it.live("fails when the conversation is longer than allowed", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(
        Effect.provide(replay(yield* standard, { form: "quiet", maxSteps: 1 }), memoryScreen().layer)
      )
      assert.strictEqual(error.code, 1)
    })
  )

  it.live("of an unknown vendor is refused with the list of known ones", () =>
    Effect.gen(function* () {
      const recording = yield* standard
      const foreign = { ...recording, cassette: { ...recording.cassette, vendor: "carrier pigeon" } }
      const error = yield* Effect.flip(Effect.provide(replay(foreign, { form: "quiet" }), memoryScreen().layer))
      assert.deepInclude(error, { code: 2 })
      assert.include(error.message, "'carrier pigeon'; known: anthropic, openai, google, google-interactions, ollama")
    })
  )
})
