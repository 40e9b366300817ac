/** What the machine takes for one commit and one message, without a cluster. Times are milliseconds. */
import * as PgClient from "@effect/sql-pg/PgClient"
import { Duration, Effect, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { spawn } from "node:child_process"
import { connect } from "node:net"

export const quantile = (times: ReadonlyArray<number>, part: number) =>
  [...times].sort((a, b) => a - b)[Math.min(times.length - 1, Math.floor(times.length * part))] ?? NaN

/** Commits of one row: one at a time (p50), and the time of each while 200 are under way. */
export const commits = (url: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* sql`CREATE TABLE IF NOT EXISTS bare (id BIGSERIAL PRIMARY KEY, body TEXT NOT NULL)`
    const insert = sql`INSERT INTO bare (body) VALUES (${"x".repeat(300)})`
    const alone = yield* Effect.forEach(Array.from({ length: 200 }), () => Effect.timed(insert))
    const many = Effect.forEach(Array.from({ length: 2_000 }), () => insert, { concurrency: 200, discard: true })
    const [all] = yield* Effect.timed(many)
    return {
      commit: quantile(
        alone.map(([took]) => Duration.toMillis(took)),
        0.5
      ),
      commitAtOnce: Duration.toMillis(all) / 2_000
    }
  }).pipe(Effect.provide(PgClient.layer({ url: Redacted.make(url) })), Effect.runPromise)

const echo = `require("net").createServer({ noDelay: true }, (socket) => socket.pipe(socket))
  .listen(0, "127.0.0.1", function () { console.log(this.address().port) })`

/** A message of 200 bytes to another process and back over TCP: p50. */
export const message = async (): Promise<number> => {
  const child = spawn(process.execPath, ["-e", echo], { stdio: ["ignore", "pipe", "inherit"] })
  const port = await new Promise<number>((resolve) => child.stdout.once("data", (data) => resolve(Number(data))))
  const socket = connect({ port, host: "127.0.0.1", noDelay: true })
  const times: Array<number> = []
  for (let count = 0; count < 1_000; count++) {
    const sent = performance.now()
    await new Promise((resolve) => {
      socket.once("data", resolve)
      socket.write("x".repeat(200))
    })
    times.push(performance.now() - sent)
  }
  socket.destroy()
  child.kill()
  return quantile(times, 0.5)
}
