/**
 * Secrets of this process.
 */

import * as SecureRandom from "effect/crypto/SecureRandom"
import * as Effect from "effect/Effect"
import * as Base64 from "effect/encoding/Base64"
import * as Base64Url from "effect/encoding/Base64Url"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { sha256 } from "./sha256.ts"

/** Creates a secret of 256 bits. */
export const random: Effect.Effect<Redacted.Redacted> = SecureRandom.SecureRandom.use(({ randomBytes }) =>
  Effect.map(randomBytes(32), (bytes) => Redacted.make(Base64Url.encode(bytes)))
).pipe(Effect.provide(SecureRandom.layerWebCrypto))

/** Returns whether a text equals a secret. Digests are compared, so that timing reveals nothing about it. */
export const isSame = (text: string, secret: Redacted.Redacted): Effect.Effect<boolean> =>
  Effect.zipWith(sha256(text), sha256(Redacted.value(secret)), (one, other) => one === other)

/**
 * Returns the values of headers and their words that may be keys, and the words of Basic credentials. Shorter words are
 * not secrets, and masking them would garble a text.
 */
export const ofHeaders = (values: ReadonlyArray<Redacted.Redacted>): ReadonlyArray<string> =>
  values
    .map(Redacted.value)
    .flatMap((value) => [value, ...value.split(/\s+/), ...credentialsOf(value)])
    .filter((value) => value.length >= 8)

const credentialsOf = (header: string): ReadonlyArray<string> => {
  const [, encoded] = /^basic\s+(\S+)$/i.exec(header) ?? []
  const decoded = encoded === undefined ? undefined : Result.getOrUndefined(Base64.decode(encoded))
  if (decoded === undefined) return []
  const credentials = new TextDecoder().decode(decoded)
  return [credentials, credentials.slice(credentials.indexOf(":") + 1)]
}
