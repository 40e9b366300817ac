/**
 * The SHA-256 of a text.
 */

import * as Digest from "effect/crypto/Digest"
import * as Effect from "effect/Effect"

/** Returns the SHA-256 of a text, in hexadecimal digits. */
export const sha256 = (text: string): Effect.Effect<string> =>
  Digest.Digest.use((digest) => digest.digestHex(Digest.sha256, new TextEncoder().encode(text))).pipe(
    Effect.provide(Digest.layerWebCrypto)
  )
