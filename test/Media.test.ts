import { assert, describe, it } from "@effect/vitest"
import { Effect, Equal } from "effect"
import { Media } from "kernai"

const bytes = (text: string) => new TextEncoder().encode(text)

describe("Media", () => {
  it.effect("has an id derived from its data alone: bytes, or the text of a path or URL (BP-116)", () =>
    Effect.gen(function* () {
      const path = yield* Media.id(Media.fromPath("a/b.png"))
      assert.match(path, /^media_[0-9a-f]{12}$/)
      assert.strictEqual(path, yield* Media.id(Media.fromBytes(bytes("a/b.png"), "text/plain")))
      assert.strictEqual(path, yield* Media.id(Media.fromUrl("a/b.png", { kind: "video", metadata: { a: 1 } })))
      assert.notStrictEqual(path, yield* Media.id(Media.fromPath("a/B.png")))
    })
  )

  it("infers MIME type and kind from the name, unless they are given (BP-117)", () => {
    const types: ReadonlyArray<readonly [string, string]> = [
      ["a.PNG", "image/png"],
      ["a.b.jpeg", "image/jpeg"],
      ["https://e.com/a.mp3?x=.png", "audio/mpeg"],
      ["https://e.com/a.webm#.pdf", "application/pdf"],
      ["a.png#x", "application/octet-stream"],
      ["dir.png/file", "application/octet-stream"],
      ["https://e.com/a.png//", "image/png"],
      ["/".repeat(1_000_000), "application/octet-stream"],
      [".png", "application/octet-stream"],
      ["..png", "application/octet-stream"],
      ["a.", "application/octet-stream"],
      ["png", "application/octet-stream"],
      ["", "application/octet-stream"],
      [".".repeat(1_000_000), "application/octet-stream"]
    ]
    for (const [name, type] of types) assert.strictEqual(Media.mimeTypeOf(name), type, name.slice(0, 40))
    assert.strictEqual(Media.fromPath("a.mp4").kind, "video")
    assert.strictEqual(Media.fromPath("a.mp4", { mimeType: "audio/x" }).kind, "audio")
    assert.strictEqual(Media.fromPath("a.mp4", { kind: "document" }).mimeType, "video/mp4")
    assert.strictEqual(Media.kindOf("Image/png"), "document")
    assert.strictEqual(Media.kindOf("image"), "document")
  })

  it("prints everything except its data (BP-118)", () => {
    const media = Media.fromBytes(bytes("secret"), "audio/wav", { metadata: { title: "t" } })
    assert.deepStrictEqual(Media.toJson({ ...media, id: "media_1" }), {
      id: "media_1",
      kind: "audio",
      mime_type: "audio/wav",
      source: "bytes",
      metadata: { title: "t" }
    })
    assert.deepStrictEqual(Media.toJson(Media.fromUrl("u"))["source"], "url")
  })

  it("shares no memory with the Buffer it is made from, and returns plain bytes (CP-4)", () => {
    const buffer = Buffer.from("abc")
    const { source } = Media.fromBytes(buffer, "text/plain")
    buffer.fill(0)
    assert.isTrue(source._tag === "Bytes")
    if (source._tag === "Bytes") assert.deepStrictEqual(source.bytes, new Uint8Array([97, 98, 99]))
  })

  it("is frozen and equal by value, and its bytes cannot be changed (BP-115, CP-4)", () => {
    const own = bytes("abc")
    const media = Media.fromBytes(own, "image/png", { metadata: { a: [1] } })
    own[0] = 0
    if (media.source._tag !== "Bytes") return assert.fail("bytes expected")
    media.source.bytes[0] = 0
    assert.deepStrictEqual(media.source.bytes, bytes("abc"))
    assert.isTrue(Object.isFrozen(media) && Object.isFrozen(media.source) && Object.isFrozen(media.metadata["a"]))
    assert.isTrue(Equal.equals(media, Media.fromBytes(bytes("abc"), "image/png", { metadata: { a: [1] } })))
    assert.isTrue(Media.isMedia(media) && !Media.isMedia({ type: "text", text: "" }))
  })
})
