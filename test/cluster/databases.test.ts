/** Several clusters in one program, each in a database of its own. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { MessageStorage, Sharding } from "effect/cluster"
import { SqlClient } from "effect/sql"
import { ClusterNode } from "kernai/cluster"
import { SqliteClient } from "kernai/sql"

describe("Clusters of one program", () => {
  it.live("keep their messages, runners and shards in their own databases", () =>
    Effect.gen(function* () {
      const memoMap = yield* Layer.makeMemoMap
      const scope = yield* Effect.scope
      const node = ClusterNode.layerClient()
      const databases = [1, 2, 3].map(() => SqliteClient.layer({ filename: ":memory:" }))
      const members = yield* Effect.forEach(databases, (database) =>
        Effect.gen(function* () {
          const build = Layer.buildWithMemoMap(Layer.provideMerge(node, database), memoMap, scope)
          const other = Layer.buildWithMemoMap(Layer.provideMerge(node, database), memoMap, scope)
          const member = yield* build
          const again = Context.get(yield* other, Sharding.Sharding)
          assert.isTrue(Context.get(member, Sharding.Sharding) === again, "two places share one member of a database")
          return member
        })
      )
      for (const member of members) {
        const sql = Context.get(member, SqlClient.SqlClient)
        const tables = yield* sql<{ readonly name: string }>`SELECT name FROM sqlite_master WHERE type = 'table'`
        const names = tables.map(({ name }) => name)
        for (const part of ["messages", "replies", "runners", "locks"]) assert.include(names, `cluster_${part}`)
      }
      assert.strictEqual(new Set(members.map(Context.get(Sharding.Sharding))).size, members.length)
      assert.strictEqual(new Set(members.map(Context.get(MessageStorage.MessageStorage))).size, members.length)
    }).pipe(Effect.scoped)
  )
})
