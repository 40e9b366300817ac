/** TLS to PostgreSQL, with certificates and modes as `libpq` has them. */
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer, Redacted } from "effect"
import { PgRunStore } from "kernai/sql"
import { spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import * as net from "node:net"
import * as tls from "node:tls"
import { folder } from "../support/folder.ts"
import * as Postgres from "../support/postgres.ts"

const hasOpenssl = spawnSync("openssl", ["version"]).status === 0

/** Makes an authority, a certificate of `localhost` for a server, and one for a client. */
const certificates = (home: string) => {
  const run = (...args: ReadonlyArray<string>) => {
    const { status, stderr } = spawnSync("openssl", args, { cwd: home, encoding: "utf8" })
    if (status !== 0) throw new Error(stderr)
  }
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
  run("req", "-x509", ...key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=authority")
  for (const [name, subject] of [
    ["server", "/CN=localhost"],
    ["client", "/CN=client"]
  ] as const) {
    const signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-addext", "subjectAltName=DNS:localhost"]
    run(
      "req",
      "-x509",
      ...key,
      ...signed,
      "-keyout",
      `${name}.key`,
      "-out",
      `${name}.pem`,
      "-days",
      "2",
      "-subj",
      subject
    )
  }
  const read = (name: string) => readFileSync(`${home}/${name}`)
  return { ca: read("ca.pem"), cert: read("server.pem"), key: read("server.key") }
}

/** A proxy that ends TLS before a server without it. Returns its port. */
const proxy = Effect.fnUntraced(function* (database: Postgres.Database, options: tls.TLSSocketOptions) {
  const server = net.createServer((client) => {
    client.on("error", () => undefined)
    client.once("readable", () => {
      // The request for TLS, which the server accepts.
      client.read(8)
      client.write("S")
      const secure = new tls.TLSSocket(client, { ...options, isServer: true })
      const plain = net.connect(database.port, database.host)
      for (const socket of [secure, plain]) socket.on("error", () => client.destroy())
      secure.pipe(plain).pipe(secure)
    })
  })
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => void server.listen(0, () => resume(Effect.void))),
    () => Effect.sync(() => server.close())
  )
  const address = server.address()
  return typeof address === "object" && address !== null ? address.port : 0
})

describe.skipIf(!Postgres.available || !hasOpenssl)("TLS to PostgreSQL", () => {
  it.live("is verified as `sslmode`, `sslrootcert` and client certificates say, in the URL or the environment", () =>
    Effect.gen(function* () {
      const database = yield* Postgres.database
      const home = yield* folder
      const { ca, cert, key } = certificates(home)
      const open = yield* proxy(database, { cert, key })
      const strict = yield* proxy(database, { cert, key, ca, requestCert: true, rejectUnauthorized: true })
      /** Opens a store. Returns `open`, or the error. */
      const opened = (port: number, query: string, host = "localhost", env: Readonly<Record<string, string>> = {}) => {
        const url = `postgres://postgres:${database.password}@${host}:${port}/${database.database}?${query}`
        const store = Layer.build(PgRunStore.layer({ url: Redacted.make(url), maxConnections: 2 }))
        return Effect.scoped(store).pipe(
          Effect.match({ onSuccess: () => "open", onFailure: String }),
          Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown(env))
        )
      }
      const root = `sslrootcert=${home}/ca.pem`
      assert.strictEqual(yield* opened(open, "sslmode=require"), "open")
      assert.strictEqual(yield* opened(open, `sslmode=verify-full&${root}`), "open")
      assert.strictEqual(yield* opened(open, `sslmode=verify-ca&${root}`, "127.0.0.1"), "open")
      assert.strictEqual(
        yield* opened(open, "", "localhost", { PGSSLMODE: "verify-full", PGSSLROOTCERT: `${home}/ca.pem` }),
        "open"
      )
      assert.match(yield* opened(open, `sslmode=verify-full&${root}`, "127.0.0.1"), /127\.0\.0\.1|altnames|hostname/i)
      assert.match(yield* opened(open, "sslmode=verify-full"), /certificate/)
      assert.match(yield* opened(open, `sslmode=require&sslrootcert=${home}/server.key`), /StoreError/)
      assert.match(yield* opened(open, `sslmode=require&sslrootcert=${home}/none`), /sslrootcert cannot be read/)
      assert.match(yield* opened(open, "sslmode=require&sslrootcert=system"), /needs sslmode=verify-full/)
      const client = `sslcert=${home}/client.pem&sslkey=${home}/client.key`
      assert.strictEqual(yield* opened(strict, `sslmode=verify-full&${root}&${client}`), "open")
      assert.notStrictEqual(yield* opened(strict, `sslmode=verify-full&${root}`), "open")
    }).pipe(Effect.scoped)
  )
})
