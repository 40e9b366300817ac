/**
 * Stores sign-ins across processes: one grant for each server address.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as Schema from "effect/Schema"
import * as Read from "../kit/files.ts"
import { sha256 } from "../kit/sha256.ts"
import { Limits } from "../Limits.ts"
import { replaceFile } from "./internal/replaceFile.ts"

const Secret = Schema.RedactedFromValue(Schema.String)

/**
 * The tokens of an authorization server for one MCP server.
 *
 * @category models
 * @since 0.1.0
 */
export const Grant = Schema.Struct({
  issuer: Schema.String,
  tokenEndpoint: Schema.String,
  /** The resource for which the tokens were issued. */
  resource: Schema.String,
  clientId: Schema.String,
  clientSecret: Schema.optionalKey(Secret),
  /** The client authentication at the token endpoint. */
  clientAuth: Schema.Literals(["none", "basic", "post"]),
  accessToken: Secret,
  refreshToken: Schema.optionalKey(Secret),
  /** Milliseconds since the epoch. */
  expiresAt: Schema.optionalKey(Schema.Finite),
  /** The scopes that were requested or granted. */
  scope: Schema.optionalKey(Schema.String)
})
/**
 * A grant with redacted secrets.
 *
 * @category models
 * @since 0.1.0
 */
export type Grant = typeof Grant.Type

/**
 * Stores grants by the address of their server. A store that cannot be read has no grants, and the user signs in again.
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
 * Keeps grants in memory.
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
 * Keeps each grant in a file of a folder, which is created when needed. A file is named by a hash of the address,
 * readable by its owner only (mode 0600), and replaced atomically.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerFile = (folder: string): Layer.Layer<TokenStore, never, FileSystem.FileSystem | Path.Path> =>
  Layer.effect(TokenStore, fromFolder(folder))

const fromFolder = Effect.fnUntraced(function* (folder: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const { fetchedBytes } = yield* Limits
  const fileOf = (url: string) => Effect.map(sha256(url), (hash) => path.join(folder, `${hash}.json`))
  return TokenStore.of({
    load: (url) =>
      fileOf(url).pipe(
        Effect.flatMap((file) => Read.text(fs, file, fetchedBytes)),
        Effect.flatMap(decode),
        Effect.option
      ),
    save: Effect.fnUntraced(
      function* (url, grant) {
        const file = yield* fileOf(url)
        const text = yield* encode(grant)
        yield* fs.makeDirectory(folder, { recursive: true, mode: 0o700 })
        yield* replaceFile(file, text)
      },
      Effect.provideService(FileSystem.FileSystem, fs),
      Effect.catch(() => Effect.logWarning("the sign-in could not be kept: its file cannot be written"))
    ),
    remove: (url) => Effect.ignore(Effect.flatMap(fileOf(url), (file) => fs.remove(file)))
  })
})

const Stored = Schema.fromJsonString(Grant)
const decode = Schema.decodeUnknownEffect(Stored)
const encode = Schema.encodeEffect(Stored)
