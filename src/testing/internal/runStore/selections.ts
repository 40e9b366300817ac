/** Checks that lists select runs by their models. */

import * as Effect from "effect/Effect"
import * as assert from "../assert.ts"
import type { RunFilter } from "../../../RunStore.ts"
import * as Journal from "../sampleJournal.ts"
import { type Check, put } from "../sampleJournal.ts"

export const selections: ReadonlyArray<Check> = [
  {
    name: "lists the root runs that ended with a reply of a model",
    body: Effect.fnUntraced(function* (one, two) {
      const agent = "selections-model"
      const failure = { type: "run_failed", error: { tag: "ProviderError", message: "" } } as const
      const begin = (id: string, createdAt: number, options: Journal.Options = {}) =>
        Journal.begin(`selections/model/${id}`, { agent, createdAt, ...options })
      const ended = begin("ended", 1)
      yield* put(one, [ended.last(), ...Journal.turn(ended), ...Journal.finish(ended)])
      const again = begin("again", 2)
      yield* put(one, [again.last(), ...Journal.turn(again), again.commit("phase", [failure])])
      const open = begin("open", 3)
      yield* put(one, [open.last(), ...Journal.turn(open)])
      const early = begin("early", 4)
      yield* put(one, [early.last(), early.commit("phase", [failure])])
      const root = "selections/model/open"
      const below = begin("below", 5, { parentRunId: root, rootRunId: root })
      yield* put(one, [below.last(), ...Journal.turn(below), ...Journal.finish(below)])
      const ids = (filter: RunFilter) =>
        Effect.map(two.list({ agent, ...filter }), (found) => found.map(({ runId }) => runId.slice(17)))
      const model = "mock/scripted"
      assert.deepEqual(yield* ids({ model }), ["again", "ended"])
      assert.deepEqual(yield* ids({ model, status: ["failed"], order: "oldest" }), ["again"])
      assert.deepEqual(yield* ids({ model, limit: 1, after: { runId: again.last().state.runId, createdAt: 2 } }), [
        "ended"
      ])
      assert.deepEqual(yield* ids({ model: "mock" }), [])
      const heads = yield* two.list({ agent, order: "oldest" })
      assert.deepEqual(
        heads.map((head) => head.model),
        [model, model, undefined, undefined, undefined]
      )
      yield* put(one, [again.commit("resume", [])])
      assert.deepEqual(yield* ids({ model }), ["ended"])
    })
  }
]
