import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { ChatHistory, Message } from "kernai"
import { SqlChatHistory, SqliteClient, SqlMemory } from "kernai/sql"
import { chatHistorySuite } from "../support/chatHistory.ts"
import { folder } from "../support/folder.ts"
import { isLong } from "../support/longRun.ts"
import * as Postgres from "../support/postgres.ts"

const sqlite = SqliteClient.layer({ filename: ":memory:" })

chatHistorySuite("SqlChatHistory on SQLite", SqlChatHistory.layerSqlite("c", ":memory:"))

describe.skipIf(!Postgres.available)("PostgreSQL", () => {
  const layer = Effect.map(Postgres.database, ({ url }) => SqlChatHistory.layerPg("c", { url: Redacted.make(url) }))
  // The long run tries here what `npm test` tries on SQLite.
  if (isLong) chatHistorySuite("SqlChatHistory on PostgreSQL", Layer.unwrap(layer))

  it.effect(
    "accepts names and keys of any length in any script, despite index size limits (S-16)",
    () =>
      Effect.gen(function* () {
        // What repeats itself would be made shorter by the database.
        const name = Array.from({ length: 512 }, (_, index) =>
          String.fromCharCode(0x4e00 + ((index * 7919) % 20_000))
        ).join("")
        const history = yield* SqlChatHistory.make(name)
        yield* history.append(Message.user("a"), name)
        yield* history.append(Message.user("b"), name)
        assert.strictEqual(yield* history.size, 1)
        const memory = yield* SqlMemory.make({ space: name })
        const { id } = yield* memory.store({ content: "a", key: name })
        assert.strictEqual((yield* memory.store({ content: "b", key: name })).id, id)
      }).pipe(Effect.provide(Postgres.layer)),
    30_000
  )
})

describe("SqlChatHistory", () => {
  it.effect("is read back from its file, which may also contain memories", () =>
    Effect.gen(function* () {
      const file = `${yield* folder}/talk.db`
      const said = ChatHistory.ChatHistory.use((history) => history.append(Message.user("hello")))
      yield* Effect.provide(said, [SqlChatHistory.layerSqlite("c", file), SqlMemory.layerSqlite(file)])
      const read = Effect.flatMap(ChatHistory.ChatHistory, (history) => history.toArray)
      const messages = yield* Effect.provide(read, SqlChatHistory.layerSqlite("c", { filename: file }))
      assert.deepStrictEqual(messages.map(Message.text), ["hello"])
    })
  )

  it.effect("separates conversations, and reads them back", () =>
    Effect.gen(function* () {
      const names = ["a", "A", "a\u0000", "a%0000", "", "x".repeat(5_000)]
      for (const name of names) yield* (yield* SqlChatHistory.make(name)).append(Message.user(name), "k")
      for (const name of names) {
        assert.deepStrictEqual((yield* (yield* SqlChatHistory.make(name)).toArray).map(Message.text), [name])
      }
      yield* (yield* SqlChatHistory.make("a")).clear
      assert.strictEqual(yield* (yield* SqlChatHistory.make("A")).size, 1)
    }).pipe(Effect.provide(sqlite))
  )

  it.effect("fails with a typed error if stored messages are unreadable, or the database no longer exists", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const history = yield* SqlChatHistory.make("c")
      yield* history.append(Message.user("a"))
      for (const body of ["{", "{}", "[1]", `[{"role":"robot","content":[]}]`]) {
        yield* sql`UPDATE kernai_messages SET body = ${body}`
        assert.strictEqual((yield* Effect.flip(history.toArray)).reason, "corrupt", body)
        assert.strictEqual((yield* Effect.flip(history.last(1))).reason, "corrupt", body)
      }
      yield* sql`DROP TABLE kernai_messages`
      assert.strictEqual((yield* Effect.flip(history.size)).reason, "unavailable")
    }).pipe(Effect.provide(sqlite))
  )
})
