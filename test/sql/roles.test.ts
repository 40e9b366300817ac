/** A role that creates tables, and one that only reads and writes them, in a schema of their own. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { Kernel, ProtocolRegistry, RunStore, SkillRegistry } from "kernai"
import { PgRunStore, SqlMediaStore } from "kernai/sql"
import { MockProvider } from "kernai/testing"
import { rolesSql } from "../../src/cli/storeRoles.ts"
import { agent } from "../support/clerk.ts"
import * as Postgres from "../support/postgres.ts"

/** Creates a schema and its roles. Returns the URLs of both roles. */
const roles = Effect.fnUntraced(function* (database: Postgres.Database, schema: string) {
  const name = (role: string) => `${database.database}_${schema}_${role}`
  const names = { schema, migrating: name("migrating"), running: name("running") }
  const admin = Context.get(yield* Layer.build(Postgres.client(database)), SqlClient.SqlClient)
  const each = (statements: ReadonlyArray<string>) =>
    Effect.forEach(statements, (statement) => admin.unsafe(statement), { discard: true })
  const statements = rolesSql(names)
    .replace(/^--.*$/gm, "")
    .split(";")
    .filter((text) => text.trim() !== "")
  const drops = [names.running, names.migrating].flatMap((role) => [`DROP OWNED BY ${role}`, `DROP ROLE ${role}`])
  // Roles belong to the server, so they are dropped before the database is.
  yield* Effect.acquireRelease(each(statements), () => Effect.orDie(each(drops)))
  const urlOf = (role: string) => {
    const url = new URL(database.url)
    url.username = role
    url.password = "secret"
    return Redacted.make(url.href)
  }
  for (const role of [names.migrating, names.running]) yield* admin.unsafe(`ALTER ROLE ${role} PASSWORD 'secret'`)
  return { admin, migrating: urlOf(names.migrating), running: urlOf(names.running) }
})

const stores = (url: Redacted.Redacted) =>
  Layer.merge(PgRunStore.layer({ url, maxConnections: 4 }), SqlMediaStore.layerPg({ url }))

const kernelOn = (url: Redacted.Redacted) =>
  Kernel.layer.pipe(
    Layer.provide([SkillRegistry.layer(), ProtocolRegistry.layer(), MockProvider.layer("<final>Done.</final>")]),
    Layer.provideMerge(stores(url))
  )

describe.skipIf(!Postgres.available)("the roles of `kernai store sql`", () => {
  it.live("create tables, run runs without the right to create any, and keep two schemas apart", () =>
    Effect.gen(function* () {
      const database = yield* Postgres.database
      const one = yield* roles(database, "one")
      const two = yield* roles(database, "two")
      const early = yield* Effect.flip(Effect.scoped(Layer.build(stores(one.running))))
      assert.include(early.message, "permission denied for schema one")
      for (const { migrating, running } of [one, two]) {
        yield* Effect.scoped(Layer.build(stores(migrating)))
        yield* Effect.provide(Kernel.run(agent, "Go.", { runId: "r" }), Layer.fresh(kernelOn(running)))
      }
      yield* Effect.provide(Kernel.run(agent, "Go.", { runId: "s" }), Layer.fresh(kernelOn(one.running)))
      const list = (url: Redacted.Redacted) =>
        Effect.provide(
          RunStore.RunStore.use((store) => store.list({ order: "oldest" })),
          Layer.fresh(stores(url))
        )
      assert.deepStrictEqual(
        (yield* list(one.running)).map(({ runId }) => runId),
        ["r", "s"]
      )
      assert.deepStrictEqual(
        (yield* list(two.running)).map(({ runId }) => runId),
        ["r"]
      )
      const tables = yield* one.admin`SELECT count(*) AS n FROM pg_tables WHERE schemaname = 'public'`
      assert.strictEqual(Number(tables[0]?.["n"]), 0)
    }).pipe(Effect.scoped)
  )

  it.live("get PostgreSQL's own reason when a connection is refused", () =>
    Effect.gen(function* () {
      const database = yield* Postgres.database
      const { admin, running } = yield* roles(database, "three")
      const refused = (url: string) =>
        Effect.map(Effect.flip(Effect.scoped(Layer.build(PgRunStore.layer({ url: Redacted.make(url) })))), String)
      const url = Redacted.value(running)
      assert.include(yield* refused(url.replace("secret", "wrong")), "password authentication failed for user")
      assert.include(yield* refused(`${url}_none`), "does not exist")
      const role = decodeURIComponent(new URL(url).username)
      yield* admin.unsafe(`ALTER ROLE ${role} CONNECTION LIMIT 0`)
      assert.include(yield* refused(url), `too many connections for role`)
    }).pipe(Effect.scoped)
  )
})
