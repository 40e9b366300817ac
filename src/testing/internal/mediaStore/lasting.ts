/** Checks of durable stores: media of one process are in another, until they are released. */

import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as assert from "node:assert/strict"
import * as Limits from "../../../Limits.ts"
import * as Media from "../../../Media.ts"
import type { MediaStoreShape } from "../../../MediaStore.ts"
import { bytes, has, png, same, sameBytes, tagOf } from "./mediaCheck.ts"

/** A sentence, and its check of two stores on the same media. */
export interface Check {
  readonly name: string
  readonly body: (one: MediaStoreShape, two: MediaStoreShape) => Effect.Effect<void, unknown, Scope.Scope>
}

/** Opens the store of a run, uses it, and closes it again, like a process. */
const visit = <A, E>(
  store: MediaStoreShape,
  runId: string,
  body: (run: MediaStoreShape) => Effect.Effect<A, E>
): Effect.Effect<A, E> =>
  Effect.acquireUseRelease(
    Scope.make(),
    (scope) => Effect.flatMap(Scope.provide(store.run(runId), scope), body),
    (scope) => Scope.close(scope, Exit.void)
  )

export const lasting: ReadonlyArray<Check> = [
  {
    name: "has a run's media when the run is opened again, in this process and in another",
    body: Effect.fnUntraced(function* (one, two) {
      const given = [
        png("lasting"),
        Media.fromPath("lasting.pdf", { metadata: { page: 3, offset: -0 } }),
        Media.fromUrl("https://example.com/lasting.mp3")
      ]
      const stored = yield* visit(one, "media/lasting", (run) => Effect.forEach(given, run.put))
      for (const store of [two, one]) {
        yield* visit(
          store,
          "media/lasting",
          Effect.fnUntraced(function* (run) {
            for (const media of stored) yield* has(run, media)
            const listed = yield* run.list
            assert.equal(listed.length, stored.length)
            stored.forEach((media, index) => same(listed[index], media))
            sameBytes(yield* run.bytes(stored[0]?.id ?? ""), bytes("lasting"))
          })
        )
      }
      const ours = yield* one.put(png("lasting, of the application"))
      yield* has(two, ours)
      yield* visit(two, "media/lasting", (run) => has(run, ours))
    })
  },
  {
    name: "sees at once what another process adds, and never replaces it",
    body: Effect.fnUntraced(function* (one, two) {
      const [here, there] = [yield* one.run("media/both"), yield* two.run("media/both")]
      const stored = yield* here.put(png("of one"))
      yield* has(there, stored)
      assert.equal(yield* tagOf(there.put(Media.fromBytes(bytes("of one"), "text/plain"))), "MediaConflict")
      const race = [here.put(png("both")), there.put(Media.fromBytes(bytes("both"), "text/plain"))]
      const ends = yield* Effect.forEach(race, tagOf, { concurrency: "unbounded" })
      assert.deepEqual(ends.sort(), ["MediaConflict", "no failure"])
      const same = [here.put(png("twice")), there.put(png("twice"))]
      assert.deepEqual(yield* Effect.forEach(same, tagOf, { concurrency: "unbounded" }), ["no failure", "no failure"])
      assert.equal(yield* there.size, 3)
    })
  },
  {
    name: "counts what earlier processes stored against the limit of a run",
    body: Effect.fnUntraced(function* (one, two) {
      const within = Effect.provideService(Limits.Limits, { ...Limits.defaults, mediaBytes: 10 })
      yield* visit(one, "media/counted", (run) => within(run.put(png("1234567"))))
      yield* visit(
        two,
        "media/counted",
        Effect.fnUntraced(function* (run) {
          assert.equal(yield* tagOf(run.put(png("7654"))), "LimitExceeded")
          yield* run.put(png("765"))
        }, within)
      )
    })
  },
  {
    name: "deletes the media of released runs, and no others",
    body: Effect.fnUntraced(function* (one, two) {
      const kept = yield* visit(one, "media/kept", (run) => run.put(png("kept")))
      const gone = yield* visit(one, "media/gone", (run) => run.put(png("gone")))
      const ours = yield* one.put(png("kept, of the application"))
      yield* two.release(["media/gone", "media/never"])
      yield* visit(
        one,
        "media/gone",
        Effect.fnUntraced(function* (run) {
          assert.equal(yield* tagOf(run.bytes(gone.id)), "MediaNotFound")
          assert.equal(yield* run.size, 0)
          yield* run.put(png("begun anew"))
        })
      )
      yield* visit(two, "media/kept", (run) => has(run, kept))
      yield* has(two, ours)
    })
  }
]
