/**
 * One PostgreSQL server for a whole test run, started when the first test file asks.
 *
 * Workers are processes of their own, so they ask at a socket; the server ends with the run.
 */
import { Effect, Exit, Scope } from "effect"
import * as fs from "node:fs"
import * as net from "node:net"
import * as os from "node:os"
import * as path from "node:path"
import * as Postgres from "./postgres.ts"

export default async () => {
  if (!Postgres.available) {
    process.env[Postgres.sharedServer] = ""
    return
  }
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "kernai-tests-"))
  const socket = path.join(folder, "postgres")
  const scope = Scope.makeUnsafe()
  let answer: Promise<string> | undefined
  const broker = net.createServer((connection) => {
    connection.on("error", () => {})
    answer ??= Effect.runPromise(
      Scope.provide(Postgres.start(), scope).pipe(
        Effect.match({
          onSuccess: (server) => JSON.stringify({ server }),
          onFailure: (error) => JSON.stringify({ error: error.message })
        })
      )
    )
    void answer.then((text) => connection.end(text))
  })
  await new Promise<void>((resolve) => broker.listen(socket, resolve))
  process.env[Postgres.sharedServer] = socket
  return async () => {
    delete process.env[Postgres.sharedServer]
    broker.close()
    await Effect.runPromise(Scope.close(scope, Exit.void))
    fs.rmSync(folder, { recursive: true, force: true })
  }
}
