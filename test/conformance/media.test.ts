/** Runs media.json: kinds, MIME types and ids (BP-115 to BP-118). */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result, Schema } from "effect"
import { Base64 } from "effect/encoding"
import { Media } from "kernai"
import * as Vectors from "../support/vectors.ts"

interface Vector {
  readonly vector: string
  readonly make: string
  readonly base64?: string
  readonly url?: string
  readonly path?: string
  readonly mime?: string
  readonly kind?: string
  readonly expected: { readonly [field: string]: string }
  readonly disputed?: unknown
}

const file = Vectors.load<{ readonly vectors: ReadonlyArray<Vector> }>("media", {
  vectors: [
    {
      ...Vectors.about,
      vector: true,
      make: true,
      base64: true,
      url: true,
      path: true,
      mime: true,
      kind: true,
      // What is expected is looked through vector by vector.
      expected: true
    }
  ]
})
const tally = Vectors.tally("media.json")
const known = new Set(["id", "kind", "mime_type", "source", "base64", "error"])

const decodeKind = Schema.decodeUnknownResult(Media.Kind)

const make = (vector: Vector, kind: Media.Kind | undefined): Media.Media | undefined => {
  const options = {
    ...(kind === undefined ? {} : { kind }),
    ...(vector.mime === undefined ? {} : { mimeType: vector.mime })
  }
  if (vector.make === "bytes" && vector.base64 !== undefined) {
    const bytes = Result.getOrThrow(Base64.decode(vector.base64))
    return Media.fromBytes(bytes, vector.mime ?? "application/octet-stream", options)
  }
  if (vector.make === "url" && vector.url !== undefined) return Media.fromUrl(vector.url, options)
  if (vector.make === "file" && vector.path !== undefined) return Media.fromPath(vector.path, options)
  return undefined
}

describe("media.json", () => {
  for (const vector of file.vectors) {
    const name = `${vector.vector}: ${vector.make} ${vector.url ?? vector.path ?? vector.base64 ?? ""}`
    const kind = vector.kind === undefined ? undefined : decodeKind(vector.kind)
    if (vector.expected.error !== undefined) {
      // What the types refuse is refused by the schema where it comes from outside.
      it(name, () => {
        assert.isTrue(kind !== undefined && Result.isFailure(kind))
        tally.ran()
      })
      continue
    }
    const media = make(vector, kind === undefined ? undefined : Result.getOrThrow(kind))
    if (media === undefined || Object.keys(vector.expected).some((field) => !known.has(field))) {
      tally.skip(vector.vector)
      continue
    }
    it.effect(name, () =>
      Effect.gen(function* () {
        const { base64, kind, ...expected } = vector.expected
        const { metadata, ...told } = Media.toJson({ ...media, id: yield* Media.id(media) })
        assert.deepStrictEqual(metadata, {})
        // A MIME type is one line for us: what stands on its second line says nothing about its kind.
        assert.deepStrictEqual<unknown>(told, { ...expected, kind: vector.disputed === undefined ? kind : media.kind })
        if (base64 !== undefined) {
          assert.isTrue(media.source._tag === "Bytes" && Base64.encode(media.source.bytes) === base64)
        }
        tally.ran()
      })
    )
  }
  tally.report()
})
