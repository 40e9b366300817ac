import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, FileSystem, Option, Path, Result, Schema, Scope } from "effect"
import { Content, Limits, Media, MediaStore } from "kernai"
import { open, suite } from "./support/mediaStore.ts"

const bytes = (text: string) => new TextEncoder().encode(text)
const png = (text: string) => Media.fromBytes(bytes(text), "image/png")
const store = MediaStore.MediaStore
const tagOf = <A, E extends { readonly _tag: string }, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.result(effect), (result) => (Result.isFailure(result) ? result.failure._tag : "no failure"))

describe("MediaStore in memory", () => {
  suite(open(MediaStore.layerMemory), { durable: false })
})

describe("MediaStore", () => {
  it.effect("returns the id, and stores a medium put twice only once (BP-119)", () =>
    Effect.gen(function* () {
      const media = yield* store
      const first = yield* media.put(png("a"))
      assert.strictEqual(first.id, "media_86f7e437faa5")
      assert.strictEqual(yield* media.put(png("a")), first)
      assert.deepStrictEqual(yield* media.get(first.id), Option.some(first))
      assert.deepStrictEqual(yield* media.bytes(first.id), bytes("a"))
      assert.deepStrictEqual(
        yield* media.content(first.id),
        Content.image({ fileId: first.id, mediaType: "image/png" })
      )
      assert.deepStrictEqual(yield* media.list, [first])
      assert.strictEqual(yield* media.size, 1)
    }).pipe(Effect.provide(MediaStore.layerMemory))
  )

  it.effect("never replaces a medium with another of the same id (S-20, W-20, R-24)", () =>
    Effect.gen(function* () {
      const media = yield* store
      const { id } = yield* media.put(Media.fromUrl("https://e.com/a.png"))
      for (const other of [
        png("https://e.com/a.png"),
        Media.fromPath("https://e.com/a.png"),
        Media.fromUrl("https://e.com/a.png", { mimeType: "image/webp" })
      ]) {
        const error = yield* Effect.flip(media.put(other))
        assert.isTrue(error._tag === "MediaConflict" && error.id === id)
      }
      assert.strictEqual((yield* media.list)[0]?.source._tag, "Url")
      const race = yield* Effect.all(
        [tagOf(media.put(png("x"))), tagOf(media.put(Media.fromBytes(bytes("x"), "text/plain")))],
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(race.toSorted(), ["MediaConflict", "no failure"])
    }).pipe(Effect.provide(MediaStore.layerMemory))
  )

  it.effect("fetches no URL, and finds no id it did not return (CP-11)", () =>
    Effect.gen(function* () {
      const media = yield* store
      const { id } = yield* media.put(Media.fromUrl("http://169.254.169.254/latest/"))
      assert.strictEqual(yield* tagOf(media.bytes(id)), "MediaUnreadable")
      assert.strictEqual(yield* tagOf(media.bytes("media_0")), "MediaNotFound")
      assert.strictEqual(yield* tagOf(media.content("__proto__")), "MediaNotFound")
      assert.deepStrictEqual(yield* media.get("constructor"), Option.none())
    }).pipe(Effect.provide(MediaStore.layerMemory))
  )

  it.effect("stores no more bytes than its limit, and names the limit in its error", () =>
    Effect.gen(function* () {
      const media = yield* store
      yield* media.put(png("12345"))
      const error = yield* Effect.flip(media.put(png("123456")))
      assert.isTrue(error._tag === "LimitExceeded" && error.limit === "mediaBytes" && error.value === 10)
      yield* media.put(png("54321"))
      yield* media.put(png("12345"))
      assert.strictEqual(yield* media.size, 2)
    }).pipe(
      Effect.provide(MediaStore.layerMemory),
      Effect.provideService(Limits.Limits, { ...Limits.defaults, mediaBytes: 10 })
    )
  )

  it.effect("replaces inline bytes with references at any depth, and leaves the rest unchanged (CP-11)", () =>
    Effect.gen(function* () {
      const media = yield* store
      const text = Content.text("t")
      const data = Content.data({ data: "x" })
      const inline = Content.document({ data: bytes("pdf"), mediaType: "application/pdf", filename: "a.pdf" })
      const parts = yield* media.admit([
        "hi",
        png("a"),
        text,
        data,
        Content.toolResult("c", [inline, text], { isError: true })
      ])
      const [pdf] = (yield* media.list).filter(({ kind }) => kind === "document")
      assert.strictEqual(pdf?.mimeType, "application/pdf")
      assert.deepStrictEqual(parts, [
        Content.text("hi"),
        Content.image({ fileId: "media_86f7e437faa5", mediaType: "image/png" }),
        text,
        data,
        Content.toolResult(
          "c",
          [Content.document({ fileId: pdf?.id ?? "", mediaType: "application/pdf", filename: "a.pdf" }), text],
          { isError: true }
        )
      ])
      assert.isTrue(parts.every(Object.isFrozen))
      assert.notInclude(JSON.stringify(parts.map(Content.encode)), btoa("pdf"))
      yield* media.admit([Content.image({ data: bytes("nameless") })])
      assert.strictEqual((yield* media.list).at(-1)?.mimeType, "application/octet-stream")
      assert.deepStrictEqual(yield* media.bytes(pdf?.id ?? ""), bytes("pdf"))
    }).pipe(Effect.provide(MediaStore.layerMemory))
  )

  it.effect("shares a run's media within its tree, hides them from other runs, and drops them when it ends", () =>
    Effect.gen(function* () {
      const media = yield* store
      const ours = yield* media.put(png("application"))
      const scopes = [yield* Scope.make(), yield* Scope.make(), yield* Scope.make()] as const
      const run = yield* Scope.provide(media.run("run-1"), scopes[0])
      const child = yield* Scope.provide(run.run("run-1"), scopes[1])
      const other = yield* Scope.provide(media.run("run-2"), scopes[2])

      const { id } = yield* run.put(png("a"))
      assert.deepStrictEqual(yield* child.bytes(id), bytes("a"))
      assert.deepStrictEqual(yield* child.bytes(ours.id), bytes("application"))
      assert.strictEqual(yield* tagOf(other.bytes(id)), "MediaNotFound")
      assert.strictEqual(yield* tagOf(media.bytes(id)), "MediaNotFound")
      assert.strictEqual(yield* tagOf(run.put(Media.fromBytes(bytes("application"), "text/plain"))), "MediaConflict")

      yield* Scope.close(scopes[0], Exit.void)
      assert.strictEqual(yield* child.size, 1)
      yield* Scope.close(scopes[1], Exit.void)
      assert.strictEqual(yield* child.size, 0)
      assert.strictEqual(yield* tagOf(child.bytes(id)), "MediaNotFound")
      const again = yield* Effect.scoped(Effect.flatMap(media.run("run-1"), (fresh) => fresh.size))
      assert.strictEqual(again, 0)
    }).pipe(Effect.provide(MediaStore.layerMemory))
  )

  it.effect("passes a skill the medium whose id the model wrote (W-21)", () =>
    Effect.gen(function* () {
      const media = yield* store
      const stored = yield* media.put(png("a"))
      const Input = Schema.Struct({ image: MediaStore.Reference })
      const { image } = yield* Schema.decodeEffect(Input)({ image: stored.id })
      assert.strictEqual(image, stored)
      assert.deepStrictEqual(yield* Schema.encodeEffect(Input)({ image }), { image: stored.id })
      const unknown = yield* Effect.flip(Schema.decodeEffect(Input)({ image: "media_0" }))
      assert.include(String(unknown), "no media with id 'media_0'")
      const document = Schema.toJsonSchemaDocument(Input)
      assert.include(JSON.stringify(document.schema), '"image":{"type":"string"')
    }).pipe(Effect.provide(MediaStore.layerMemory))
  )

  it.effect("reads no files when it was built without a file system", () =>
    Effect.gen(function* () {
      const media = yield* store
      const { id } = yield* media.put(Media.fromPath("package.json"))
      assert.strictEqual(yield* tagOf(media.bytes(id)), "MediaUnreadable")
    }).pipe(Effect.provide(MediaStore.layerMemory))
  )

  it.effect("reads regular files inside its folder, afresh each time, and nothing else (S-4, W-20)", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const parent = yield* fs.makeTempDirectoryScoped()
      const root = path.join(parent, "ok")
      yield* fs.makeDirectory(path.join(root, "sub"), { recursive: true })
      yield* fs.makeDirectory(path.join(parent, "ok-secret"))
      yield* fs.writeFileString(path.join(parent, "ok-secret", "s"), "secret")
      yield* fs.writeFileString(path.join(root, "sub", "a..b.png"), "one")
      yield* fs.symlink(path.join(parent, "ok-secret", "s"), path.join(root, "link"))

      yield* Effect.gen(function* () {
        const media = yield* store
        const read = (file: string) => Effect.flatMap(media.put(Media.fromPath(file)), ({ id }) => media.bytes(id))
        assert.deepStrictEqual(yield* read("sub/a..b.png"), bytes("one"))
        yield* fs.writeFileString(path.join(root, "sub", "a..b.png"), "two")
        assert.deepStrictEqual(yield* read("sub/a..b.png"), bytes("two"))
        assert.deepStrictEqual(yield* read(path.join(root, "sub", "a..b.png")), bytes("two"))
        const refused = [
          "",
          "../ok-secret/s",
          "sub/../../ok-secret/s",
          path.join(parent, "ok-secret", "s"),
          "/etc/passwd",
          "/dev/zero",
          "link",
          "sub",
          ".",
          "missing.png",
          "sub/a..b.png\u0000.txt",
          "..\\ok-secret\\s",
          "%2e%2e/ok-secret/s",
          `file://${root}/sub/a..b.png`,
          "a".repeat(5_000)
        ]
        for (const file of refused) assert.strictEqual(yield* tagOf(read(file)), "MediaUnreadable", file.slice(0, 60))
        const small = Effect.provideService(read("sub/a..b.png"), Limits.Limits, {
          ...Limits.defaults,
          fetchedBytes: 2
        })
        assert.strictEqual(yield* tagOf(small), "MediaUnreadable")
      }).pipe(Effect.provide(MediaStore.layerMemoryWith({ root })))
    }).pipe(Effect.provide(NodeServices.layer))
  )
})
