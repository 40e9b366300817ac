/** Checks that a store keeps small texts beside its runs. A store without notes passes. */

import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as assert from "../assert.ts"
import type { Check } from "../sampleJournal.ts"

export const notes: ReadonlyArray<Check> = [
  {
    name: "keeps notes by their keys, for every process, and replaces and removes each as a whole",
    body: Effect.fnUntraced(function* (one, two) {
      if (one.notes === undefined || two.notes === undefined) return
      const [first, second] = [
        { key: "notes/Ä %1", text: '{"odd":"a\u0000b \ud800"}' },
        { key: "notes/b", text: "" }
      ]
      yield* one.notes.set(second.key, second.text)
      yield* one.notes.set(first.key, "before")
      yield* two.notes.set(first.key, first.text)
      assert.deepEqual(
        yield* one.notes.list("notes/"),
        [second, first].sort((a, b) => (a.key < b.key ? -1 : 1))
      )
      assert.deepEqual(yield* two.notes.list("notes/b"), [second])
      for (const { key } of [first, second]) yield* two.notes.set(key, undefined)
      yield* one.notes.set("notes/unknown", undefined)
      assert.deepEqual(yield* one.notes.list("notes/"), [])
      assert.deepEqual(yield* one.list({ prefix: "notes/" }), [])
    })
  },
  {
    name: "announces notes that are set through another store, where it announces notes",
    body: Effect.fnUntraced(function* (one, two) {
      if (one.notes === undefined || two.notes?.changes === undefined) return
      const { set } = one.notes
      yield* set("notes/c", "")
      const changed = yield* Effect.forkChild(two.notes.changes.next)
      // It may take a while until it listens.
      let times = 0
      const again = Effect.suspend(() => set("notes/c", `${++times}`))
      yield* Effect.repeat(Effect.andThen(again, Effect.sleep("5 millis")), {
        until: () => changed.pollUnsafe() !== undefined
      })
      yield* Fiber.join(changed)
      yield* set("notes/c", undefined)
    })
  }
]
