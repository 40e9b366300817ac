/** Checks that lists select runs by their models and tags. */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
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
  },
  {
    name: "gives tags to runs, lists the runs of a tag, and takes tags away, for every process",
    body: Effect.fnUntraced(function* (one, two) {
      if (one.tags === undefined || two.tags === undefined) return
      const agent = "selections-tag"
      const caller = { id: "ada", labels: { urgent: "#urgent" } }
      const [a = "", b = "", c = ""] = ["a", "b", "c"].map((id) => `selections/tag/${id}`)
      for (const [index, runId] of [a, b, c].entries()) {
        yield* put(one, [Journal.begin(runId, { agent, createdAt: index, caller }).last()])
      }
      const ids = (filter: RunFilter) =>
        Effect.map(two.list({ agent, ...filter }), (found) => found.map(({ runId }) => runId))
      const odd = "\u00c4%\ud83d\u0000'"
      const refused = yield* Effect.flip(one.tags.add("x".repeat(65), [a]))
      assert.equal(refused._tag === "StoreError" && refused.reason, "invalid")
      yield* one.tags.add("urgent", [c, a, "selections/tag/unknown"])
      yield* two.tags.add("urgent", [a])
      yield* two.tags.add(odd, [a])
      assert.deepEqual(yield* ids({ tag: "urgent" }), [c, a])
      assert.deepEqual(yield* ids({ tag: "urgent", order: "oldest", limit: 1 }), [a])
      assert.deepEqual(yield* ids({ tag: "urgent", after: { runId: c, createdAt: 2 } }), [a])
      assert.deepEqual(yield* ids({ tag: odd, labels: caller.labels }), [a])
      for (const none of ["", "#urgent", "Urgent"]) assert.deepEqual(yield* ids({ tag: none }), [])
      const tagsOf = Effect.map(one.head(a), (head) => Option.getOrUndefined(head)?.tags)
      assert.deepEqual(yield* tagsOf, ["urgent", odd])
      yield* one.tags.remove("urgent", [a, b])
      assert.deepEqual(yield* tagsOf, [odd])
      assert.deepEqual(yield* ids({ tag: "urgent" }), [c])
      yield* two.tags.remove("urgent", [c])
      assert.deepEqual(yield* ids({ tag: "urgent" }), [])
      const [first] = yield* two.list({ agent, order: "newest", limit: 1 })
      assert.equal(first !== undefined && "tags" in first, false)
      yield* one.remove([a])
      yield* put(one, [Journal.begin(a, { agent, createdAt: 3 }).last()])
      assert.deepEqual(yield* ids({ tag: odd }), [])
    })
  }
]
