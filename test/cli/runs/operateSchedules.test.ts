import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Kernel, MediaStore, ProtocolRegistry, SkillRegistry } from "kernai"
import { SqlRunStore } from "kernai/sql"
import { MockProvider } from "kernai/testing"
import { join } from "node:path"
import { folder } from "../../support/folder.ts"
import { kernai } from "../support.ts"

const agent = Agent.make({ name: "reporter", instructions: "", model: "scripted" })

/** Lets an hour pass in a process with a schedule. */
const anHour = (filename: string) =>
  Effect.gen(function* () {
    const schedule = Kernel.schedule(agent, "go", { name: "hourly", cron: "0 * * * *", timeZone: "UTC" })
    const process = yield* Effect.forkChild(schedule, { startImmediately: true })
    yield* TestClock.adjust("1 hour")
    yield* Effect.yieldNow
    yield* Fiber.interrupt(process)
  }).pipe(
    Effect.provide(
      Kernel.layer.pipe(
        Layer.provide([
          SkillRegistry.layer(),
          ProtocolRegistry.layer(),
          MediaStore.layerMemory,
          MockProvider.layer("done")
        ]),
        Layer.provideMerge(SqlRunStore.layerSqlite(filename)),
        Layer.provideMerge(TestClock.layer())
      )
    )
  )

describe("kernai schedules", () => {
  it.live("lists, pauses, resumes, runs and removes the schedules of a store", () =>
    Effect.gen(function* () {
      const filename = join(yield* folder, "a.db")
      const env = { env: { KERNAI_STORE: filename } }
      const schedules = (...args: ReadonlyArray<string>) => kernai(["schedules", ...args], env)
      yield* anHour(filename)
      assert.match((yield* schedules("list")).out, /hourly +reporter +0 \* \* \* \* UTC +20\S+Z +queued/)
      assert.strictEqual(
        (yield* schedules("pause", "hourly", "--by", "Ada", "--reason", "audit")).out,
        "paused  hourly\n"
      )
      assert.match((yield* schedules("list")).out, /hourly +reporter +0 \* \* \* \* UTC +paused: Ada: audit +queued/)
      const { runId }: { runId: string } = JSON.parse((yield* schedules("run", "hourly", "--json")).out)
      assert.match(runId, /^hourly@20\S+Z$/)
      assert.include((yield* kernai(["runs", "list", "--json"], env)).out, runId)
      yield* schedules("resume", "hourly")
      const listed = JSON.parse((yield* schedules("list", "--json", "--agent-name", "reporter")).out)
      assert.deepStrictEqual([listed.paused, typeof listed.next, listed.last.runId], [undefined, "number", runId])
      assert.strictEqual((yield* schedules("list", "--json", "--tenant", "acme")).out, "")
      yield* schedules("remove", "hourly")
      assert.include((yield* schedules("list")).progress, "no schedules found")
      const unknown = yield* schedules("pause", "hourly")
      assert.strictEqual(unknown.code, 2)
      assert.include(unknown.error, "no schedule 'hourly'")
    })
  )
})
