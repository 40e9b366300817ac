/**
 * Secrets of this process.
 */

import * as SecureRandom from "effect/crypto/SecureRandom"
import * as Effect from "effect/Effect"
import * as Base64Url from "effect/encoding/Base64Url"
import * as Redacted from "effect/Redacted"
import { sha256 } from "./sha256.ts"

/** Creates a secret of 256 bits. */
export const random: Effect.Effect<Redacted.Redacted> = SecureRandom.SecureRandom.use(({ randomBytes }) =>
  Effect.map(randomBytes(32), (bytes) => Redacted.make(Base64Url.encode(bytes)))
).pipe(Effect.provide(SecureRandom.layerWebCrypto))

/** Returns whether a text equals a secret. Digests are compared, so that timing reveals nothing about it. */
export const isSame = (text: string, secret: Redacted.Redacted): Effect.Effect<boolean> =>
  Effect.zipWith(sha256(text), sha256(Redacted.value(secret)), (one, other) => one === other)
