import { afterAll, describe } from "@effect/vitest"
import { Effect, Exit, Redacted, Scope } from "effect"
import { PgRunStore } from "../../src/sql/index.ts"
import * as Postgres from "../support/postgres.ts"
import { open, suite } from "../support/runStore.ts"

const scope = Scope.makeUnsafe()
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

describe.skipIf(!Postgres.available)("PgRunStore", () => {
  const database = Effect.runSync(Effect.cached(Scope.provide(Postgres.database, scope)))
  suite(Effect.flatMap(database, ({ url }) => open(PgRunStore.layer({ url: Redacted.make(url), maxConnections: 4 }))))
})
