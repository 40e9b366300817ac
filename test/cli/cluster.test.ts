/** `kernai worker --cluster`: runners as processes on PostgreSQL, and the commands of other processes. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { createServer } from "node:net"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { final } from "../support/blocks.ts"
import { folder } from "../support/folder.ts"
import * as Postgres from "../support/postgres.ts"
import { kernai, start } from "./support.ts"

const freePort = Effect.callback<string>((resume) => {
  const probe = createServer()
  probe.listen(0, "127.0.0.1", () => {
    const address = probe.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    probe.close(() => resume(Effect.succeed(String(port))))
  })
})

describe.skipIf(!Postgres.available)("kernai worker --cluster", () => {
  it.live("runs what other processes submit, gives its shards up at SIGTERM, and another runner continues", () =>
    Effect.gen(function* () {
      const { password, url } = yield* Postgres.database
      const home = yield* folder
      const script = join(home, "script.json")
      writeFileSync(script, JSON.stringify([final("Done.")]))
      const env = { KERNAI_STORE: `pg:${url.replace(`:${password}@`, "@")}`, PGPASSWORD: password }
      const store = ["--store", `pg:${url}`]
      const runner = Effect.flatMap(freePort, (port) =>
        start(["worker", "--cluster", "--script", script], { env: { ...env, KERNAI_CLUSTER_PORT: port } })
      )
      const first = yield* runner
      yield* first.until("a runner of the cluster at 127.0.0.1:")
      const one = (yield* kernai(["run", "--create", "go", "--detach", ...store])).out.trim()
      yield* first.until(`${one}  completed\n`)
      const second = yield* runner
      yield* second.until("a runner of the cluster at 127.0.0.1:")
      first.kill("SIGTERM")
      assert.strictEqual((yield* first.ended).code, 130)
      const two = (yield* kernai(["run", "--create", "go", "--detach", ...store])).out.trim()
      yield* second.until(`${two}  completed\n`)
      const shown = yield* kernai(["runs", "show", two, "--store", `pg:${url}`])
      assert.include(shown.out, "status    completed")
    }).pipe(Effect.scoped)
  )

  it.effect("needs a PostgreSQL store, and does not end by itself", () =>
    Effect.gen(function* () {
      const worker = ["worker", "--cluster", "--script", "none.json"]
      const file = yield* kernai([...worker, "--store", "sqlite:runs.db"])
      assert.deepInclude(file, { code: 2, error: "kernai: --cluster needs --store pg:URL\n" })
      const once = yield* kernai([...worker, "--once", "--store", "pg:postgres://host/runs"])
      assert.deepInclude(once, { code: 2, error: "kernai: --once is for a worker without --cluster\n" })
    })
  )
})
