import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Processes } from "kernai"
import { writeFileSync } from "node:fs"
import { hostname } from "node:os"
import { join } from "node:path"
import { final } from "../../support/blocks.ts"
import { folder } from "../../support/folder.ts"
import { kernai, start } from "../support.ts"

describe("kernai processes", () => {
  it.live("lists and drains a worker in a process of its own, which takes runs again once it is undrained", () =>
    Effect.gen(function* () {
      const home = yield* folder
      const script = join(home, "script.json")
      writeFileSync(script, JSON.stringify([final("Done.")]))
      const store = ["--store", `sqlite:${join(home, "runs.db")}`]
      const processes = (...args: ReadonlyArray<string>) => kernai(["processes", ...args, ...store])
      const submit = kernai(["run", "--create", "go", "--detach", ...store])
      const first = (yield* submit).out.trim()
      const worker = yield* start(["worker", "--script", script, ...store])
      yield* worker.until(`${first}  completed\n`)
      const listed: Processes.Process = JSON.parse((yield* processes("list", "--json")).out)
      assert.deepInclude(listed, { state: "running", holds: [] })
      const { name } = listed
      assert.isTrue(name.startsWith(`${hostname()}-`))
      const drained = yield* processes("drain", name, "--by", "Ada", "--reason", "rollout")
      assert.match(drained.out, new RegExp(`${name} +drained +0 .*\\(drained: Ada: rollout\\)`))
      assert.strictEqual(drained.code, 0)
      const second = (yield* submit).out.trim()
      assert.include((yield* kernai(["runs", "show", second, ...store])).out, "status    queued")
      assert.match((yield* processes("undrain", name)).out, new RegExp(`${name} +running`))
      yield* worker.until(`${second}  completed\n`)
      worker.kill("SIGTERM")
      assert.strictEqual((yield* worker.ended).code, 130)
      assert.include((yield* processes("list")).progress, "no process runs the runs of this store")
    }).pipe(Effect.scoped)
  )

  it.live("drains an agent or all for processes that start later, shows such drains, and ends them", () =>
    Effect.gen(function* () {
      const store = ["--store", `sqlite:${join(yield* folder, "runs.db")}`]
      const processes = (...args: ReadonlyArray<string>) => kernai(["processes", ...args, ...store])
      const id = (yield* kernai(["run", "--create", "go", "--detach", ...store])).out.trim()
      assert.strictEqual((yield* processes("drain", "--all")).code, 0)
      assert.include((yield* processes("list")).progress, "drained: all agents: ")
      yield* kernai(["worker", "--once", "--model", "ollama/none", ...store])
      assert.include((yield* kernai(["runs", "show", id, ...store])).out, "status    queued")
      yield* processes("undrain", "--all")
      assert.notInclude((yield* processes("list")).progress, "drained")
    }).pipe(Effect.scoped)
  )

  it.live("refuses an unknown name, and no name at all", () =>
    Effect.gen(function* () {
      const store = ["--store", `sqlite:${join(yield* folder, "runs.db")}`]
      yield* kernai(["run", "--create", "go", "--detach", ...store])
      const unknown = yield* kernai(["processes", "drain", "nobody", ...store])
      assert.deepInclude(unknown, { code: 2, error: "kernai: no process 'nobody' runs the runs of this store\n" })
      const nothing = yield* kernai(["processes", "drain", ...store])
      assert.strictEqual(nothing.code, 2)
      assert.include(nothing.error, "or --all alone")
    }).pipe(Effect.scoped)
  )
})
