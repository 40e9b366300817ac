/** What the machine takes for one commit and one message, without a cluster. Times are milliseconds. */
import * as PgClient from "@effect/sql-pg/PgClient"
import { Context, Duration, Effect, Layer, Redacted, type Scope } from "effect"
import { SqlClient } from "effect/sql"
import { spawn } from "node:child_process"
import { connect } from "node:net"

export const quantile = (times: ReadonlyArray<number>, part: number) =>
  [...times].sort((a, b) => a - b)[Math.min(times.length - 1, Math.floor(times.length * part))] ?? NaN

/** Commits and reads a row, on a client that closes with the scope. */
export const statements = Effect.fnUntraced(function* (url: string) {
  const client = yield* Layer.build(Layer.fresh(PgClient.layer({ url: Redacted.make(url) })))
  const sql = Context.get(client, SqlClient.SqlClient)
  yield* sql`CREATE TABLE IF NOT EXISTS bare (id BIGSERIAL PRIMARY KEY, body TEXT NOT NULL)`
  return {
    commit: Effect.asVoid(sql`INSERT INTO bare (body) VALUES (${"x".repeat(300)})`),
    read: Effect.asVoid(sql`SELECT body FROM bare WHERE id = 1`)
  }
})

/** The time of a commit while 200 are under way. */
export const commitAtOnce = (url: string): Promise<number> =>
  Effect.flatMap(statements(url), ({ commit }) =>
    Effect.timed(Effect.forEach(Array.from({ length: 2_000 }), () => commit, { concurrency: 200, discard: true }))
  ).pipe(
    Effect.map(([took]) => Duration.toMillis(took) / 2_000),
    Effect.scoped,
    Effect.runPromise
  )

const echoing = `require("net").createServer({ noDelay: true }, (socket) => socket.pipe(socket))
  .listen(0, "127.0.0.1", function () { console.log(this.address().port) })`

/** Sends a message of 200 bytes to another process and back over TCP. That process ends with the scope. */
export const echo: Effect.Effect<Effect.Effect<void>, never, Scope.Scope> = Effect.gen(function* () {
  const child = yield* Effect.acquireRelease(
    Effect.sync(() => spawn(process.execPath, ["-e", echoing], { stdio: ["ignore", "pipe", "inherit"] })),
    (child) => Effect.sync(() => void child.kill())
  )
  const port = yield* Effect.callback<number>((resume) => {
    child.stdout.once("data", (data) => resume(Effect.succeed(Number(data))))
  })
  const socket = yield* Effect.acquireRelease(
    Effect.sync(() => connect({ port, host: "127.0.0.1", noDelay: true })),
    (socket) => Effect.sync(() => void socket.destroy())
  )
  return Effect.callback<void>((resume) => {
    socket.once("data", () => resume(Effect.void))
    socket.write("x".repeat(200))
  })
})

/** A message of 200 bytes to another process and back over TCP: p50. */
export const message = (): Promise<number> =>
  Effect.flatMap(echo, (sent) => Effect.forEach(Array.from({ length: 1_000 }), () => Effect.timed(sent))).pipe(
    Effect.map((times) =>
      quantile(
        times.map(([took]) => Duration.toMillis(took)),
        0.5
      )
    ),
    Effect.scoped,
    Effect.runPromise
  )

/**
 * The statements of a start in a cluster, bare and one after another. A client commits the run, offers it and commits its
 * message; its runner commits that it has the message, reads the head, and the state for its host and for itself, commits
 * the resume, and takes the offer back. Only commits wait for the disk.
 */
export const start = (url: string) =>
  Effect.zipWith(statements(url), echo, ({ commit, read }, echo) => {
    const client = [commit, read, commit]
    const runner = [commit, read, read, read, read, read, commit, read, read]
    return Effect.all([...client, echo, ...runner], { discard: true })
  })
