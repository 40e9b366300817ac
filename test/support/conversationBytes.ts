/**
 * The bytes of a conversation of 400 turns of 200 tokens in a store: `node test/support/conversationBytes.ts sqlite`.
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Effect, Layer, Option, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { Agent, Chat, ChatHistory, Kernel, MediaStore, ProtocolRegistry, RunStore, SkillRegistry } from "kernai"
import { FileRunStore } from "kernai/file"
import { PgRunStore, SqlRunStore } from "kernai/sql"
import { MockProvider } from "kernai/testing"
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Postgres from "./postgres.ts"

const turns = 400
const [kind = ""] = process.argv.slice(2)
const folder = mkdtempSync(join(tmpdir(), "conversation-"))

const sizeOfFolder = Effect.sync(() =>
  readdirSync(folder, { recursive: true, withFileTypes: true }).reduce(
    (bytes, file) => bytes + (file.isFile() ? statSync(join(file.parentPath, file.name)).size : 0),
    0
  )
)

const heap = Effect.sync(() => {
  globalThis.gc?.()
  globalThis.gc?.()
  return process.memoryUsage().heapUsed
})

/** The store, and the bytes that are in it. */
const stores = {
  memory: Effect.succeed({
    layer: RunStore.layerMemoryWith({ endedRuns: Infinity, endedBytes: Infinity }),
    bytes: heap
  }),
  files: Effect.succeed({
    layer: Layer.provide(FileRunStore.layer(folder), NodeFileSystem.layer),
    bytes: sizeOfFolder
  }),
  sqlite: Effect.succeed({ layer: SqlRunStore.layerSqlite(join(folder, "runs.db")), bytes: sizeOfFolder }),
  postgres: Effect.gen(function* () {
    const database = yield* Postgres.database
    const bytes = Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const [row] = yield* sql<{ bytes: string }>`
        SELECT sum(pg_total_relation_size(oid)) AS bytes FROM pg_class WHERE relkind = 'r' AND relname LIKE 'kernai_%'`
      return Number(row?.bytes)
    }).pipe(Effect.provide(Postgres.client(database)), Effect.orDie)
    return { layer: PgRunStore.layer({ url: Redacted.make(database.url) }), bytes }
  })
}

/** A text of about 200 tokens. */
const text = (number: number) => `${number}: ${"a few words about fibers and their scopes ".repeat(20)}`

const agent = Agent.make({ instructions: "Talk.", model: "scripted" })

const services = Layer.mergeAll(
  SkillRegistry.layer(),
  ProtocolRegistry.layer(),
  MediaStore.layerMemory,
  ChatHistory.layerMemory
)

const measured = Effect.gen(function* () {
  const { bytes, layer } = yield* kind in stores
    ? stores[kind as keyof typeof stores]
    : Effect.die(`no store '${kind}'`)
  yield* Effect.gen(function* () {
    let before = 0
    for (let turn = 0; turn < turns; turn++) {
      // The code that the first turn brings into the heap is not its conversation.
      if (turn === 1 && kind === "memory") before = yield* bytes
      yield* Chat.chat(agent, text(turn), { provider: MockProvider.make(text(turn + 0.5)), runId: `chat.${turn}` })
    }
    const size = (yield* bytes) - before
    const store = yield* RunStore.RunStore
    const started = performance.now()
    const last = Option.getOrThrow(yield* store.load(`chat.${turns - 1}`))
    const millis = performance.now() - started
    console.log(JSON.stringify({ turns, bytes: size, millis, messages: last.input.length }))
  }).pipe(Effect.provide(Layer.provideMerge(Kernel.layerNoProvider, Layer.merge(services, layer))))
})

await Effect.runPromise(Effect.scoped(measured)).finally(() => rmSync(folder, { recursive: true }))
