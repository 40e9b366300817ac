import { Effect, Layer, Redacted } from "effect"
import { Kernel } from "kernai"
import { PgRunStore } from "kernai/sql"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { assert, describe, it } from "vitest"
import { folder } from "../../support/folder.ts"
import * as Postgres from "../../support/postgres.ts"
import { bundle, open, type Running } from "./processes.ts"
import { agentOf, kernelOf, noEffects } from "./runs.ts"

/** A process of this kind, with runs under way, on a database of its own. */
const started = Effect.fnUntraced(function* (kind: "workers" | "cluster") {
  const server = yield* Postgres.start()
  const urlAt = (port: number) => `postgres://${server.username}:${server.password}@${server.host}:${port}/postgres`
  const place = yield* folder
  const ledger = join(place, "ledger")
  writeFileSync(ledger, "")
  const program = yield* Effect.promise(() => bundle(place))
  const at = { port: server.port, urlAt, version: () => 0 }
  const slot = yield* Effect.acquireRelease(
    Effect.sync(() => open("a", program, { kind, ledger, lease: 3_000 }, at)),
    ({ close }) => Effect.promise(close)
  )
  const client = kernelOf(0, noEffects).pipe(
    Layer.provide(PgRunStore.layer({ url: Redacted.make(urlAt(server.port)) }))
  )
  const running = yield* Effect.promise(async () => {
    for (;;) {
      const running = slot.now()
      if (running !== undefined) return running
      await sleep(50)
    }
  })
  yield* Effect.provide(
    Effect.forEach(Array.from({ length: 20 }), () => Kernel.submit(agentOf(0), "pay")),
    client
  )
  yield* Effect.sleep("1 second")
  return running
})

const endOf = ({ ended, links: [database], signal }: Running): Promise<boolean> => {
  database?.cut()
  signal("SIGTERM")
  return Promise.race([ended.then(() => true), sleep(20_000, false)])
}

describe.skipIf(!Postgres.available)("a process whose database is cut off in silence", () => {
  for (const kind of ["workers", "cluster"] as const) {
    it(`ends after SIGTERM, within its drain and some seconds (${kind})`, async () => {
      const hasEnded = Effect.flatMap(started(kind), (running) => Effect.promise(() => endOf(running)))
      assert.isTrue(await Effect.runPromise(Effect.scoped(hasEnded)))
    })
  }
})
