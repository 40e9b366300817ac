/**
 * TLS of a PostgreSQL connection, by the parameters of its URL and the environment variables that `libpq` reads.
 */

import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { readFile } from "node:fs/promises"
import type { ConnectionOptions } from "node:tls"
import { StoreError } from "../../KernelError.ts"

/** The TLS settings of a URL or of the environment. */
interface Settings {
  readonly sslmode: string | undefined
  readonly sslrootcert: string | undefined
  readonly sslcert: string | undefined
  readonly sslkey: string | undefined
}

/**
 * Returns the TLS options for a URL, or undefined to leave it to the driver, which knows `disable`, `allow` and
 * `prefer`. As in `libpq`, `require` trusts any certificate unless there is an `sslrootcert`, `verify-ca` accepts a
 * trusted certificate of any host, and `verify-full` only that of the host; `sslrootcert=system` trusts the authorities
 * of the system.
 */
export const tlsOf = Effect.fnUntraced(function* (
  url: string
): Effect.fn.Return<ConnectionOptions | undefined, StoreError> {
  const { sslcert, sslkey, sslmode, sslrootcert } = yield* settingsOf(url)
  const isSystem = sslrootcert === "system"
  const mode = sslmode ?? (isSystem ? "verify-full" : undefined)
  if (mode !== "require" && mode !== "verify-ca" && mode !== "verify-full") return undefined
  if (isSystem && mode !== "verify-full") {
    return yield* refused(`sslrootcert=system needs sslmode=verify-full, not ${mode}`)
  }
  const ca = isSystem || sslrootcert === undefined ? undefined : yield* fileOf("sslrootcert", sslrootcert)
  return {
    rejectUnauthorized: mode !== "require" || ca !== undefined,
    ...(mode === "verify-full" ? {} : { checkServerIdentity: () => undefined }),
    ...(ca === undefined ? {} : { ca }),
    ...(sslcert === undefined ? {} : { cert: yield* fileOf("sslcert", sslcert) }),
    ...(sslkey === undefined ? {} : { key: yield* fileOf("sslkey", sslkey) })
  }
})

const settingsOf = Effect.fnUntraced(function* (url: string): Effect.fn.Return<Settings> {
  const params = URL.parse(url)?.searchParams
  const setting = (name: keyof Settings) =>
    Effect.map(
      Effect.orElseSucceed(Config.option(Config.String(`PG${name.toUpperCase()}`)), () => Option.none<string>()),
      (fallback) => params?.get(name) ?? Option.getOrUndefined(fallback)
    )
  return {
    sslmode: yield* setting("sslmode"),
    sslrootcert: yield* setting("sslrootcert"),
    sslcert: yield* setting("sslcert"),
    sslkey: yield* setting("sslkey")
  }
})

const fileOf = (name: string, path: string): Effect.Effect<string, StoreError> =>
  Effect.mapError(
    Effect.tryPromise(() => readFile(path, "utf8")),
    () => new StoreError({ operation: "open", reason: "unavailable", detail: `the file of ${name} cannot be read` })
  )

const refused = (detail: string): Effect.Effect<never, StoreError> =>
  Effect.fail(new StoreError({ operation: "open", reason: "unavailable", detail }))
