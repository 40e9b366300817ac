/** Messages between the runners and clients of a cluster. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import type { RunState } from "kernai"
import { Resumption, resumption } from "../../src/cluster/internal/wire.ts"

const answers: ReadonlyArray<RunState.Answer> = [
  { callId: "a", approved: true, by: "ada", input: { to: "x" }, values: { seat: "5A", bags: 2 } },
  { callId: "b", approved: false, reason: "too dear", dismissed: true }
]

describe("a resume sent to another runner", () => {
  it.effect("carries answers with the values of a form and with a dismissal", () =>
    Effect.gen(function* () {
      const sent = yield* Schema.encodeEffect(Resumption)(resumption({ answers }))
      const received = yield* Schema.decodeUnknownEffect(Resumption)(JSON.parse(JSON.stringify(sent)))
      assert.deepStrictEqual(received.answers, answers)
    })
  )
})
