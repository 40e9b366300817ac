/**
 * kernel.json: whole runs, replies streamed by character and in one piece (BP-30 to BP-82, BP-95 to BP-103).
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { differences } from "../support/tape/differences.ts"
import { learnMedia } from "../support/tape/media.ts"
import { play } from "../support/tape/play.ts"
import { keys, type Tape } from "../support/tape/script.ts"
import { load, tally, unknownKeys } from "../support/vectors.ts"

const { vectors } = load<{ readonly vectors: ReadonlyArray<Tape> }>("kernel", {
  // Each tape is looked through before it is played.
  vectors: true
})

/** A tape of ours: a hash of the recorded library is JSON here (BP-73), and a setting that it leaves open is none. */
const hash: Tape = {
  id: "tape-hash",
  title: "skill that returns a hash",
  agent: {
    instructions: "BASE INSTRUCTIONS",
    model: { id: "test-model", capabilities: [] },
    max_steps: 6,
    skills: null,
    protocols: null,
    generation: { temperature: 0, thinking: { budget: 1024 } }
  },
  input: "do the thing",
  skills: [{ name: "hash", returns: { kind: "json", value: { a: 1, b: [null, "=> nil, x"] } } }],
  replies: ['<block type="command" name="hash">x</block>', '<block type="final">done</block>'],
  expected: {
    result: "done",
    generation_seen: [{ temperature: 0, max_tokens: null, thinking: { budget: 1024, effort: null } }],
    tapes: [
      {
        scope: "root",
        calls: 2,
        messages: [
          {
            role: "system",
            base: "BASE INSTRUCTIONS",
            exactly_base: true,
            block_rules: false,
            mentions: [],
            multimodal_inputs: null,
            multimodal_outputs: null
          },
          { role: "user", content: ["do the thing"] },
          { role: "assistant", content: ['<block type="command" name="hash">x</block>'] },
          {
            role: "user",
            content: ['<block type="result" name="hash">{"a"=>1, "b"=>[nil, "=> nil, x"]}</block>']
          }
        ]
      }
    ]
  }
}

describe("kernel.json", () => {
  const counted = tally("kernel")

  for (const tape of [...vectors, hash]) {
    const unknown = unknownKeys(tape, keys)
    const { expected } = tape
    // One of two streamed outcomes alone, or no outcome at all, would be compared with nothing.
    const isWhole = (expected.streamed_by_char === undefined) === (expected.streamed_in_one_chunk === undefined)
    const hasOutcome = expected.streamed_by_char ?? expected.result ?? expected.error
    if (unknown.length > 0 || !isWhole || hasOutcome === undefined) {
      counted.skip(`${tape.id}: ${unknown.join(" ")}`)
      continue
    }
    it.live(`${tape.id}: ${tape.title}`, () =>
      Effect.gen(function* () {
        counted.ran()
        yield* learnMedia(tape)
        const chars = yield* play(tape, false)
        const whole = yield* play(tape, true)
        if (expected.streamed_by_char !== undefined && expected.streamed_in_one_chunk !== undefined) {
          // The recorded answer depended on the cuts; ours must not, and must be one of the two (BP-15).
          const outcomes = [expected.streamed_by_char, expected.streamed_in_one_chunk]
          const [best] = outcomes
            .map((outcome) => [...differences(tape, chars, outcome), ...differences(tape, whole, outcome)])
            .toSorted((a, b) => a.length - b.length)
          assert.deepStrictEqual(best, [])
          return
        }
        const found = [...differences(tape, chars, expected), ...differences(tape, whole, expected)]
        if (tape.disputed === undefined) assert.deepStrictEqual(found, [])
        else if (found.length > 0)
          console.log(`disputed (${JSON.stringify(tape.disputed)}): ${found.map((one) => one.where).join(", ")}`)
      })
    )
  }

  it.live("compares a failed run with the error its tape names, and fails for an unknown name", () =>
    Effect.gen(function* () {
      const tape = { ...hash, replies: [{ fail: "boom" }] }
      const played = yield* play(tape, true)
      const found = (name: string) => differences(tape, played, { error: { class: name, message: "boom" } })
      assert.deepStrictEqual(found("Kernai::ProviderError"), [])
      assert.deepStrictEqual(
        ["Kernai::MaxStepsReachedError", "Kernai::Unheard"].map((name) => found(name).map(({ where }) => where)),
        [["tape-hash error"], ["tape-hash error"]]
      )
    })
  )

  counted.report()
})
