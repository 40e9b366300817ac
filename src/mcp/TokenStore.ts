/**
 * Where sign-ins are kept between processes.
 *
 * One grant for each server address. In files each is its own, readable by its
 * owner only (mode 0600), replaced whole or not at all, and named by a hash:
 * no address ever becomes a path.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import * as Digest from "effect/crypto/Digest"
import * as SecureRandom from "effect/crypto/SecureRandom"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as Schema from "effect/Schema"
import * as Read from "../internal/base/files.ts"
import { Limits } from "../Limits.ts"
import { replaceFile } from "./internal/replaceFile.ts"

/**
 * What an authorization server gave for one MCP server.
 *
 * @category models
 * @since 0.1.0
 */
export const Grant = Schema.Struct({
  issuer: Schema.String,
  tokenEndpoint: Schema.String,
  /** What the tokens are for. */
  resource: Schema.String,
  clientId: Schema.String,
  clientSecret: Schema.optionalKey(Schema.RedactedFromValue(Schema.String)),
  /** How the client proves itself at the token endpoint. */
  clientAuth: Schema.Literals(["none", "basic", "post"]),
  accessToken: Schema.RedactedFromValue(Schema.String),
  refreshToken: Schema.optionalKey(Schema.RedactedFromValue(Schema.String)),
  /** Milliseconds since the epoch. */
  expiresAt: Schema.optionalKey(Schema.Finite),
  /** What was asked for, and what is allowed besides. */
  scope: Schema.optionalKey(Schema.String)
})
/**
 * A grant, its secrets redacted.
 *
 * @category models
 * @since 0.1.0
 */
export type Grant = typeof Grant.Type

/**
 * Keeps grants by the address of their server.
 *
 * A store that cannot be read or written is a store without grants: the user
 * signs in again.
 *
 * @category services
 * @since 0.1.0
 */
export class TokenStore extends Context.Service<
  TokenStore,
  {
    readonly load: (url: string) => Effect.Effect<Option.Option<Grant>>
    readonly save: (url: string, grant: Grant) => Effect.Effect<void>
    readonly remove: (url: string) => Effect.Effect<void>
  }
>()("kernai/mcp/TokenStore") {}

/**
 * Keeps grants in this process.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerMemory: Layer.Layer<TokenStore> = Layer.sync(TokenStore, () => {
  const grants = new Map<string, Grant>()
  return TokenStore.of({
    load: (url) => Effect.sync(() => Option.fromUndefinedOr(grants.get(url))),
    save: (url, grant) => Effect.sync(() => void grants.set(url, grant)),
    remove: (url) => Effect.sync(() => void grants.delete(url))
  })
})

/**
 * Keeps each grant in a file of its own in a folder, which is made when it is needed.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerFile = (folder: string): Layer.Layer<TokenStore, never, FileSystem.FileSystem | Path.Path> =>
  Layer.effect(
    TokenStore,
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const digest = yield* Digest.Digest
      const random = yield* SecureRandom.SecureRandom
      const { fetchedBytes } = yield* Limits

      const fileOf = (url: string) =>
        Effect.map(digest.digestHex(Digest.sha256, new TextEncoder().encode(url)), (hash) =>
          path.join(folder, `${hash}.json`)
        )

      const load = (url: string) =>
        fileOf(url).pipe(
          Effect.flatMap((file) => Read.text(fs, file, fetchedBytes)),
          Effect.flatMap(decode),
          Effect.option
        )

      const save = Effect.fnUntraced(
        function* (url: string, grant: Grant) {
          const file = yield* fileOf(url)
          const text = yield* encode(grant)
          yield* fs.makeDirectory(folder, { recursive: true, mode: 0o700 })
          yield* replaceFile(file, text)
        },
        Effect.provideService(FileSystem.FileSystem, fs),
        Effect.provideService(SecureRandom.SecureRandom, random),
        Effect.catch(() => Effect.logWarning("the sign-in could not be kept: its file cannot be written"))
      )

      const remove = (url: string) => Effect.ignore(Effect.flatMap(fileOf(url), (file) => fs.remove(file)))

      return TokenStore.of({ load, save, remove })
    })
  ).pipe(Layer.provide([Digest.layerWebCrypto, SecureRandom.layerWebCrypto]))

const Stored = Schema.fromJsonString(Grant)
const decode = Schema.decodeUnknownEffect(Stored)
const encode = Schema.encodeEffect(Stored)
