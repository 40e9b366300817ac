/**
 * Checks of media stores: of every store, ids, conflicts, limits, references and visibility; of durable stores, that
 * media of one process are in another, until they are released.
 */

import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as assert from "./assert.ts"
import * as Content from "../../Content.ts"
import type { JsonObject } from "../../Content.ts"
import * as Limits from "../../Limits.ts"
import * as Media from "../../Media.ts"
import type { MediaStoreShape, StoredMedia } from "../../MediaStore.ts"

/** A sentence, and its check of a store. */
interface Check {
  readonly name: string
  readonly body: (store: MediaStoreShape) => Effect.Effect<void, unknown, Scope.Scope>
}

const every = Uint8Array.from({ length: 70_000 }, (_, index) => index % 256)

/** Checks that a store returns a medium by its id. */
const has = (store: MediaStoreShape, media: StoredMedia) =>
  Effect.map(store.get(media.id), (found) => same(Option.getOrUndefined(found), media))

/** Checks that two media are equal in every field. */
const same = (actual: StoredMedia | undefined, expected: StoredMedia): void => {
  assert.ok(actual !== undefined, `there is no '${expected.id}'`)
  assert.deepEqual(
    [actual.id, actual.kind, actual.mimeType, actual.metadata],
    [expected.id, expected.kind, expected.mimeType, expected.metadata]
  )
  assert.ok(Equal.equals(actual.source, expected.source), `'${expected.id}' has another source`)
}

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

/** Creates a medium of type PNG. Its bytes are never decoded. */
const png = (text: string): Media.Media => Media.fromBytes(bytes(text), "image/png")

const odd: JsonObject = {
  "": "",
  nul: "a\u0000b",
  surrogates: "\ud800 \udc00 \ud83d\ude00",
  zero: 0,
  deep: [[{ in: [null, true] }]],
  quotes: `'"\`\\ ; DROP TABLE kernai_media; --`,
  constructor: { prototype: { polluted: 1 } }
}

/** Returns a medium of every kind. */
const everyKind = (): ReadonlyArray<Media.Media> => [
  png("a picture"),
  Media.fromBytes(every, "audio/wav", { metadata: odd }),
  Media.fromBytes(new Uint8Array(0), "application/pdf"),
  Media.fromBytes(bytes("told otherwise"), "text/plain", { kind: "video" }),
  Media.fromPath("no/such/\u0000 file.png", { metadata: odd }),
  Media.fromUrl("https://example.com/a.mp4?x=\ud800", { mimeType: `image/png"/><block type="final">x</block>` })
]

/** Checks that bytes are equal, without printing long lists of numbers. */
const sameBytes = (actual: Uint8Array, expected: Uint8Array): void => {
  assert.equal(actual.length, expected.length)
  assert.ok(
    actual.every((byte, index) => byte === expected[index]),
    "the bytes are others"
  )
}

/** Returns the tag of an effect's failure. */
const tagOf = <A, E extends { readonly _tag: string }>(effect: Effect.Effect<A, E>): Effect.Effect<string> =>
  Effect.match(effect, { onFailure: (error) => error._tag, onSuccess: () => "no failure" })

/** Returns the ids of all media in a store. */
const idsOf = (store: MediaStoreShape) => Effect.map(store.list, (all) => all.map(({ id }) => id))

export const basics: ReadonlyArray<Check> = [
  {
    name: "returns every kind of medium equal, by an id that is the same everywhere",
    body: Effect.fnUntraced(function* (store) {
      const run = yield* store.run("media/kinds")
      for (const media of everyKind()) {
        const stored = yield* run.put(media)
        assert.equal(stored.id, yield* Media.id(media))
        same(stored, { ...media, id: stored.id })
        yield* has(run, stored)
        if (media.source._tag === "Bytes") sameBytes(yield* run.bytes(stored.id), media.source.bytes)
        else assert.equal(yield* tagOf(run.bytes(stored.id)), "MediaUnreadable")
      }
      assert.equal((yield* run.put(png("a"))).id, "media_86f7e437faa5")
      assert.equal(Reflect.get({}, "polluted"), undefined)
    })
  },
  {
    name: "refuses metadata that is not JSON",
    body: Effect.fnUntraced(function* (store) {
      const run = yield* store.run("media/no json")
      for (const value of [new Date(0), undefined, Number.NaN, 1n, () => 0]) {
        const metadata = { a: [value] } as JsonObject
        assert.equal(yield* tagOf(run.put(Media.fromUrl("https://example.com/a.png", { metadata }))), "StoreError")
      }
      assert.equal(yield* run.size, 0)
    })
  },
  {
    name: "keeps a medium put twice once, and lists the oldest first",
    body: Effect.fnUntraced(function* (store) {
      const run = yield* store.run("media/list")
      assert.deepEqual(yield* idsOf(run), [])
      const ids: Array<string> = []
      for (const text of ["c", "a", "b", "a", "c"]) ids.push((yield* run.put(png(text))).id)
      const listed = yield* run.list
      assert.deepEqual(
        listed.map((media) => media.id),
        ids.slice(0, 3)
      )
      assert.equal(yield* run.size, 3)
      assert.deepEqual(
        yield* run.content(ids[0] ?? ""),
        Content.image({ fileId: ids[0] ?? "", mediaType: "image/png" })
      )
    })
  },
  {
    name: "never replaces a medium by another with the same id, not even by one put at the same time",
    body: Effect.fnUntraced(function* (store) {
      const run = yield* store.run("media/conflict")
      const url = "https://example.com/conflict.png"
      const stored = yield* run.put(Media.fromUrl(url))
      for (const other of [png(url), Media.fromPath(url), Media.fromUrl(url, { mimeType: "image/webp" })]) {
        assert.equal(yield* tagOf(run.put(other)), "MediaConflict")
      }
      yield* has(run, stored)
      const both = [run.put(png("race")), run.put(Media.fromBytes(bytes("race"), "text/plain"))]
      const ends = yield* Effect.forEach(both, tagOf, { concurrency: "unbounded" })
      assert.deepEqual(ends.sort(), ["MediaConflict", "no failure"])
      assert.equal(yield* run.size, 2)
    })
  },
  {
    name: "holds no more bytes for a run than its limit, and names the limit",
    body: Effect.fnUntraced(function* (store) {
      const run = yield* store.run("media/limit")
      yield* Effect.gen(function* () {
        yield* run.put(png("12345"))
        const error = yield* Effect.flip(run.put(png("123456")))
        assert.ok(error._tag === "LimitExceeded" && error.limit === "mediaBytes" && error.value === 10, error.message)
        yield* run.put(png("54321"))
        yield* run.put(png("12345"))
        assert.equal(yield* tagOf(run.put(png("6"))), "LimitExceeded")
        assert.equal(yield* run.size, 2)
        const other = yield* store.run("media/limit/other")
        yield* other.put(png("123456"))
      }).pipe(Effect.provideService(Limits.Limits, { ...Limits.defaults, mediaBytes: 10 }))
    })
  },
  {
    name: "replaces inline bytes by references, at any depth",
    body: Effect.fnUntraced(function* (store) {
      const run = yield* store.run("media/admit")
      const inline = Content.document({ data: bytes("pdf"), mediaType: "application/pdf", filename: "a.pdf" })
      const parts = yield* run.admit(["hi", png("a"), Content.toolResult("c", [inline])])
      const [picture, document] = yield* run.list
      assert.deepEqual(parts, [
        Content.text("hi"),
        Content.image({ fileId: picture?.id ?? "", mediaType: "image/png" }),
        Content.toolResult("c", [
          Content.document({ fileId: document?.id ?? "", mediaType: "application/pdf", filename: "a.pdf" })
        ])
      ])
      sameBytes(yield* run.bytes(document?.id ?? ""), bytes("pdf"))
    })
  },
  {
    name: "shares a run's media within its tree, hides them from others, and lets all see the application's",
    body: Effect.fnUntraced(function* (store) {
      const ours = yield* store.put(png("of the application"))
      const run = yield* store.run("media/tree")
      const child = yield* run.run("media/tree")
      const other = yield* store.run("media/other")
      const { id } = yield* run.put(png("of the run"))
      yield* has(child, ours)
      yield* has(other, ours)
      sameBytes(yield* child.bytes(id), bytes("of the run"))
      for (const stranger of [other, store]) {
        assert.equal(yield* tagOf(stranger.bytes(id)), "MediaNotFound")
        assert.equal(yield* tagOf(stranger.content(id)), "MediaNotFound")
      }
      const clash = Media.fromBytes(bytes("of the application"), "text/plain")
      assert.equal(yield* tagOf(run.put(clash)), "MediaConflict")
      assert.equal((yield* run.put(png("of the application"))).id, ours.id)
      assert.equal(yield* run.size, 1)
    })
  },
  {
    name: "shows a fork the media of the runs it comes from, and keeps its own from them",
    body: Effect.fnUntraced(function* (store) {
      const original = yield* store.run("media/original")
      const before = yield* original.put(png("before the fork"))
      const fork = yield* store.run("media/fork", ["media/between", "media/original"])
      const after = yield* fork.put(png("after the fork"))
      yield* has(fork, before)
      assert.equal(yield* tagOf(original.bytes(after.id)), "MediaNotFound")
      assert.equal(yield* fork.size, 1)
    })
  },
  {
    name: "finds nothing under an id that it did not issue, wherever it may lead",
    body: Effect.fnUntraced(function* (store) {
      const strange = [
        "",
        ".",
        "..",
        "../../etc/passwd",
        "/etc/passwd",
        "__proto__",
        "constructor",
        "%",
        "\u0000",
        "\ud800"
      ]
      for (const id of [...strange, "x'; DROP TABLE kernai_media;--", "x".repeat(5_000)]) {
        const run = yield* store.run(id)
        assert.ok(Option.isNone(yield* run.get(id)))
        assert.equal(yield* tagOf(run.bytes(id)), "MediaNotFound")
        assert.deepEqual(yield* idsOf(run), [], `the run '${id.slice(0, 20)}' has media of another`)
        yield* run.put(png(`only of ${id}`))
        assert.equal(yield* run.size, 1)
      }
    })
  }
]

/** A sentence, and its check of two stores on the same media. */
interface LastingCheck {
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

export const lasting: ReadonlyArray<LastingCheck> = [
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
