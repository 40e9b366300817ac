/**
 * What the checks of a media store share.
 */

import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Option from "effect/Option"
import * as assert from "node:assert/strict"
import * as Media from "../../../Media.ts"
import type { MediaStoreShape, StoredMedia } from "../../../MediaStore.ts"

/** Bytes of a text. */
export const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

/** A picture, as far as anybody here looks. */
export const png = (text: string): Media.Media => Media.fromBytes(bytes(text), "image/png")

/** A store gives back under its id what was put. */
export const has = (store: MediaStoreShape, media: StoredMedia) =>
  Effect.map(store.get(media.id), (found) => same(Option.getOrUndefined(found), media))

/** Two media are one in all that is to be known of them. */
export const same = (actual: StoredMedia | undefined, expected: StoredMedia): void => {
  assert.ok(actual !== undefined, `there is no '${expected.id}'`)
  assert.deepEqual(
    [actual.id, actual.kind, actual.mimeType, actual.metadata],
    [expected.id, expected.kind, expected.mimeType, expected.metadata]
  )
  assert.ok(Equal.equals(actual.source, expected.source), `'${expected.id}' has another source`)
}

/** How an effect ends, by the tag of its failure. */
export const tagOf = <A, E extends { readonly _tag: string }>(effect: Effect.Effect<A, E>): Effect.Effect<string> =>
  Effect.match(effect, { onFailure: (error) => error._tag, onSuccess: () => "no failure" })

/** Bytes are these; two long lists of numbers would be told at a length that helps nobody. */
export const sameBytes = (actual: Uint8Array, expected: Uint8Array): void => {
  assert.equal(actual.length, expected.length)
  assert.ok(
    actual.every((byte, index) => byte === expected[index]),
    "the bytes are others"
  )
}

/** The ids of everything that was put into a store. */
export const idsOf = (store: MediaStoreShape) => Effect.map(store.list, (all) => all.map(({ id }) => id))
