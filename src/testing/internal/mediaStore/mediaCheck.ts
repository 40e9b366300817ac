/** Helpers of the checks of a media store. */

import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Option from "effect/Option"
import * as assert from "node:assert/strict"
import * as Media from "../../../Media.ts"
import type { MediaStoreShape, StoredMedia } from "../../../MediaStore.ts"

export const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

/** Creates a medium of type PNG. Its bytes are never decoded. */
export const png = (text: string): Media.Media => Media.fromBytes(bytes(text), "image/png")

/** Checks that a store returns a medium by its id. */
export const has = (store: MediaStoreShape, media: StoredMedia) =>
  Effect.map(store.get(media.id), (found) => same(Option.getOrUndefined(found), media))

/** Checks that two media are equal in every field. */
export const same = (actual: StoredMedia | undefined, expected: StoredMedia): void => {
  assert.ok(actual !== undefined, `there is no '${expected.id}'`)
  assert.deepEqual(
    [actual.id, actual.kind, actual.mimeType, actual.metadata],
    [expected.id, expected.kind, expected.mimeType, expected.metadata]
  )
  assert.ok(Equal.equals(actual.source, expected.source), `'${expected.id}' has another source`)
}

/** Returns the tag of an effect's failure. */
export const tagOf = <A, E extends { readonly _tag: string }>(effect: Effect.Effect<A, E>): Effect.Effect<string> =>
  Effect.match(effect, { onFailure: (error) => error._tag, onSuccess: () => "no failure" })

/** Checks that bytes are equal, without printing long lists of numbers. */
export const sameBytes = (actual: Uint8Array, expected: Uint8Array): void => {
  assert.equal(actual.length, expected.length)
  assert.ok(
    actual.every((byte, index) => byte === expected[index]),
    "the bytes are others"
  )
}

/** Returns the ids of all media in a store. */
export const idsOf = (store: MediaStoreShape) => Effect.map(store.list, (all) => all.map(({ id }) => id))
