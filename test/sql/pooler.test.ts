/** A store behind a pooler that shares connections between transactions: notifications do not come back. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Fiber, Layer, Logger, Option, Redacted, Stream } from "effect"
import { Kernel, MediaStore, ProtocolRegistry, RunStore, SkillRegistry } from "kernai"
import { PgRunStore } from "kernai/sql"
import { MockProvider } from "kernai/testing"
import * as net from "node:net"
import { agent } from "../support/clerk.ts"
import * as Postgres from "../support/postgres.ts"

/** Splits a stream of messages: a type of one byte, then the length of the rest. The first message may have no type. */
const messages = (each: (type: string, message: Buffer) => void, isFirstTyped: boolean) => {
  let rest = Buffer.alloc(0)
  let hasType = isFirstTyped
  return (data: Buffer) => {
    rest = Buffer.concat([rest, data])
    for (;;) {
      const head = hasType ? 1 : 0
      if (rest.length < head + 4) return
      const length = head + rest.readInt32BE(head)
      if (rest.length < length) return
      each(hasType ? rest.toString("latin1", 0, 1) : "", rest.subarray(0, length))
      rest = rest.subarray(length)
      hasType = true
    }
  }
}

/** A proxy that loses notifications, and notes the names of prepared statements. Returns its URL. */
const pooler = Effect.fnUntraced(function* (database: Postgres.Database, names: Array<string>) {
  const server = net.createServer((client) => {
    const server = net.connect(database.port, database.host)
    const fromClient = messages((type, message) => {
      if (type === "P") names.push(message.toString("utf8", 5, message.indexOf(0, 5)))
      server.write(message)
    }, false)
    // `A` is a NotificationResponse.
    const fromServer = messages((type, message) => void (type === "A" || client.write(message)), true)
    client.on("data", fromClient).on("close", () => server.destroy())
    server.on("data", fromServer).on("close", () => client.destroy())
    for (const socket of [client, server]) socket.on("error", () => undefined)
  })
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
    () => Effect.sync(() => server.close())
  )
  const address = server.address()
  const url = new URL(database.url)
  url.port = String(typeof address === "object" && address !== null ? address.port : 0)
  return url.href
})

const storeAt = (url: string) =>
  Effect.map(Layer.build(PgRunStore.layer({ url: Redacted.make(url), maxConnections: 4 })), (built) =>
    Context.get(built, RunStore.RunStore)
  )

describe.skipIf(!Postgres.available)("PgRunStore behind a pooler of transactions", () => {
  it.live("says that it polls, prepares no statement by name, and still sees what other processes store", () => {
    const lines: Array<string> = []
    const logger = Logger.make(({ message }) => void lines.push(String(message)))
    return Effect.gen(function* () {
      const database = yield* Postgres.database
      const names: Array<string> = []
      const url = yield* pooler(database, names)
      const here = yield* storeAt(url)
      assert.match(lines.join("\n"), /notifications of PostgreSQL do not come back/)
      const there = yield* storeAt(database.url)
      assert.lengthOf(lines, 1)
      const kernel = Kernel.layer.pipe(
        Layer.provide([
          SkillRegistry.layer(),
          ProtocolRegistry.layer(),
          MediaStore.layerMemory,
          MockProvider.layer("<final>Done.</final>")
        ]),
        Layer.provideMerge(Layer.succeed(RunStore.RunStore, there))
      )
      const seen = yield* Effect.forkChild(
        Stream.runCollect(Stream.takeUntil(here.tail("r"), ({ events }) => events.some(isEnd)))
      )
      yield* Effect.provide(Kernel.run(agent, "Go.", { runId: "r" }), kernel)
      assert.isAbove((yield* Fiber.join(seen)).length, 1)
      assert.strictEqual(Option.getOrThrow(yield* here.head("r")).status.type, "completed")
      assert.deepStrictEqual(new Set(names), new Set([""]))
    }).pipe(Effect.scoped, Effect.provide(Logger.layer([logger])))
  })
})

const isEnd = ({ type }: { readonly type: string }) => type === "run_completed"
