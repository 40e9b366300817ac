/**
 * The runs of a conversation share its earlier messages, in each store that writes them.
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { Array as Arr, Context, Effect, Layer, Option, Redacted, Result, type Scope, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { Chat, ChatHistory, Kernel, MediaStore, ProtocolRegistry, RunCodec, RunStore, SkillRegistry } from "kernai"
import { FileRunStore } from "kernai/file"
import { PgRunStore, SqliteClient, SqlRunStore } from "kernai/sql"
import { MockProvider, Replay } from "kernai/testing"
import * as fs from "node:fs"
import { agent } from "../support/chats.ts"
import { folder } from "../support/folder.ts"
import * as Postgres from "../support/postgres.ts"
import { open } from "../support/runStore.ts"

/** A place to keep runs, and what is in it. */
interface Place {
  readonly layer: Layer.Layer<RunStore.RunStore, RunStore.StoreError>
  /** The bytes of all journals and shared messages. */
  readonly bytes: Effect.Effect<number, unknown>
  /** The number of chunks of shared messages. */
  readonly chunks: Effect.Effect<number, unknown>
  /** Removes one of the chunks. */
  readonly damage: Effect.Effect<unknown, unknown>
}

const inTables = (sql: SqlClient.SqlClient): Omit<Place, "layer"> => ({
  bytes: Effect.map(
    sql<{ bytes: number }>`SELECT CAST(SUM(length(body)) AS INTEGER) AS bytes FROM (
      SELECT body FROM kernai_journal UNION ALL SELECT body FROM kernai_histories
    ) AS bodies`,
    ([row]) => row?.bytes ?? 0
  ),
  chunks: Effect.map(sql<{ id: string }>`SELECT id FROM kernai_histories`, (rows) => rows.length),
  damage: sql`UPDATE kernai_histories SET body = 'gone' WHERE before IS NULL`
})

const inFiles = (directory: string): Omit<Place, "layer"> => {
  const list = (suffix: string) =>
    fs.existsSync(directory) ? fs.readdirSync(directory).flatMap((file) => (file.endsWith(suffix) ? [file] : [])) : []
  const shared = () => {
    const names = fs.existsSync(`${directory}/.histories`) ? fs.readdirSync(`${directory}/.histories`) : []
    return names.map((file) => `.histories/${file}`)
  }
  return {
    bytes: Effect.sync(() =>
      Arr.reduce([...list(".jsonl"), ...shared()], 0, (bytes, file) => bytes + fs.statSync(`${directory}/${file}`).size)
    ),
    chunks: Effect.sync(() => shared().length),
    damage: Effect.sync(() => fs.rmSync(`${directory}/${shared()[0]}`))
  }
}

const clientOf = <E>(layer: Layer.Layer<SqlClient.SqlClient, E>) =>
  Effect.map(Layer.build(layer), (context) => inTables(Context.get(context, SqlClient.SqlClient)))

const places: ReadonlyArray<readonly [string, boolean, Effect.Effect<Place, unknown, Scope.Scope>]> = [
  [
    "files",
    true,
    Effect.map(folder, (directory) => ({
      layer: Layer.provide(FileRunStore.layer(directory), NodeFileSystem.layer),
      ...inFiles(directory)
    }))
  ],
  [
    "SQLite",
    true,
    Effect.gen(function* () {
      const filename = `${yield* folder}/runs.db`
      return { layer: SqlRunStore.layerSqlite(filename), ...(yield* clientOf(SqliteClient.layer({ filename }))) }
    })
  ],
  [
    "PostgreSQL",
    Postgres.available,
    Effect.gen(function* () {
      const database = yield* Postgres.database
      const layer = PgRunStore.layer({ url: Redacted.make(database.url), maxConnections: 4 })
      return { layer, ...(yield* clientOf(Postgres.client(database))) }
    })
  ]
]

/** A text of about 200 tokens. */
const text = (number: number) => `${number}: ${"a few words about fibers and their scopes ".repeat(20)}`

/** The services of a chat on a store. */
const servicesOn = (store: RunStore.RunStoreShape) =>
  Layer.provideMerge(
    Kernel.layerNoProvider,
    Layer.mergeAll(
      Layer.orDie(SkillRegistry.layer()),
      ProtocolRegistry.layer(),
      MediaStore.layerMemory,
      Layer.succeed(RunStore.RunStore, store)
    )
  )

/** Runs the messages of a conversation, which ends up with `to` runs. */
const talk = (to: number) =>
  Effect.gen(function* () {
    const from = Math.floor((yield* (yield* ChatHistory.ChatHistory).size) / 2)
    for (let turn = from; turn < to; turn++) {
      const provider = MockProvider.make(text(turn + 0.5))
      yield* Chat.chat(agent, text(turn), { provider, runId: `chat.${turn}` })
    }
  })

for (const [name, isThere, place] of places) {
  describe.skipIf(!isThere)(`a conversation in ${name}`, () => {
    it.live(
      "takes bytes in proportion to its messages",
      () =>
        Effect.gen(function* () {
          const { bytes, layer } = yield* place
          const store = yield* open(layer)
          const sizes = yield* Effect.forEach([20, 40, 60], (to) => Effect.andThen(talk(to), bytes)).pipe(
            Effect.provide(Layer.merge(servicesOn(store), ChatHistory.layerMemory))
          )
          const [first = 0, second = 0, third = 0] = sizes
          assert.isBelow((third - second) / (second - first), 1.1, `${sizes}`)
          // 400 of these turns take less than 6 MB.
          assert.isBelow(third, (60 * 6_000_000) / 400)
        }),
      60_000
    )

    it.live(
      "opens, exports, forks and replays each of its runs, also after the runs before it were removed",
      () =>
        Effect.gen(function* () {
          const { chunks, layer } = yield* place
          const store = yield* open(layer)
          const services = servicesOn(store)
          yield* Effect.provide(talk(16), Layer.merge(services, ChatHistory.layerMemory))
          const other = yield* open(layer)
          const before = Option.getOrThrow(yield* other.load("chat.15"))
          assert.lengthOf(before.input, 31)
          yield* Effect.gen(function* () {
            yield* store.remove(Array.from({ length: 15 }, (_, turn) => `chat.${turn}`))
            assert.deepStrictEqual(Option.getOrThrow(yield* other.load("chat.15")).input, before.input)
            const lines = (yield* RunStore.recordsOf("chat.15")).map(RunCodec.encodeRecord).map(Result.getOrThrow)
            const records = lines.map((line) => Result.getOrThrow(RunCodec.make().decodeRecord(line)))
            assert.deepStrictEqual(records, yield* Stream.runCollect(other.read("chat.15")))
            // Fails if the agent gets another conversation.
            yield* Replay.run(agent, "chat.15")
            yield* Kernel.fork("chat.15", { revision: 3, runId: "fork" })
            yield* store.remove(["chat.15"])
            assert.deepStrictEqual(Option.getOrThrow(yield* other.load("fork")).input, before.input)
            assert.isAbove(yield* chunks, 0)
            yield* store.remove(["fork"])
            assert.strictEqual(yield* chunks, 0)
          }).pipe(Effect.provide(services))
        }),
      60_000
    )

    it.live("says that earlier messages of a run are missing, and reads its other runs", () =>
      Effect.gen(function* () {
        const { damage, layer } = yield* place
        const store = yield* open(layer)
        yield* Effect.provide(talk(8), Layer.merge(servicesOn(store), ChatHistory.layerMemory))
        yield* damage
        const other = yield* open(layer)
        const error = yield* Effect.flip(other.load("chat.7"))
        assert.strictEqual(error.reason, "corrupt")
        assert.include(error.message, "record 1 of run 'chat.7': its earlier messages are missing")
        assert.isTrue(Option.isSome(yield* other.load("chat.1")))
        assert.include(
          (yield* other.list()).map(({ runId }) => runId),
          "chat.1"
        )
      })
    )
  })
}
