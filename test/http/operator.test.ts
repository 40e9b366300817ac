/** Operating the runs of all callers over HTTP, and what a cancellation reports. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option, Queue, Redacted, Stream } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import { TestClock } from "effect/testing"
import { Agent, Kernel, MediaStore, ProtocolRegistry, RunStore, SkillRegistry } from "kernai"
import { Access } from "kernai/http"
import { MockProvider } from "kernai/testing"
import { final } from "../support/blocks.ts"
import { clientOf, serve, spoken } from "../support/http.ts"

const callers: Record<string, Access.Caller> = {
  eva: { id: "eva", tenant: "acme" },
  root: { id: "root", name: "Rita", isOperator: true }
}

const as = (token: string) => ({ transformClient: HttpClient.mapRequest(HttpClientRequest.bearerToken(token)) })

const access = Access.bearer((token) => Effect.succeed(Option.fromNullishOr(callers[Redacted.value(token)])))

const clerk = Agent.make({ name: "clerk", instructions: "", model: "scripted", version: "7" })

/** A store with the schedule of a process that is gone, and a run of it. */
const scheduled = Effect.gen(function* () {
  const store = yield* RunStore.makeMemory
  const kernel = Kernel.layer.pipe(
    Layer.provide([
      MockProvider.layer("done"),
      SkillRegistry.layer(),
      ProtocolRegistry.layer(),
      MediaStore.layerMemory,
      Layer.succeed(RunStore.RunStore, store)
    ])
  )
  yield* Effect.gen(function* () {
    const schedule = Kernel.schedule(clerk, "go", { name: "hourly", cron: "0 * * * *", timeZone: "UTC" })
    yield* Effect.forkScoped(schedule, { startImmediately: true })
    yield* TestClock.adjust("1 hour")
  }).pipe(Effect.scoped, Effect.provide(Layer.provideMerge(kernel, TestClock.layer())))
  return store
})

describe("the operator routes", () => {
  it.live("count and requeue the runs of all callers, and prune them", () =>
    Effect.gen(function* () {
      const { url } = yield* serve({
        replies: [{ text: "", reason: "content-filter" }, final("Yes.")],
        agent: clerk,
        with: access
      })
      const [eva, root] = [yield* clientOf(url, as("eva")), yield* clientOf(url, as("root"))]
      const runId = yield* eva.start("clerk", "Ready?")
      yield* Stream.runDrain(eva.follow(runId))
      const [group] = yield* root.operator.overview({ agent: "clerk", version: "7", tenant: "acme" })
      assert.deepInclude(group, { need: "no_answer", agent: "clerk", version: "7", runs: 1, oldest: runId })
      assert.deepStrictEqual(yield* root.operator.overview({ version: "6" }), [])
      assert.deepStrictEqual(yield* root.operator.requeue({ need: "failed" }), [])
      assert.deepStrictEqual(yield* root.operator.requeue({ need: "no_answer", tenant: "acme" }), [runId])
      yield* Stream.runDrain(root.follow(runId, { until: "end" }))
      assert.strictEqual((yield* root.head(runId)).version, "7")
      const updatedBefore = Date.now() + 60_000
      assert.deepStrictEqual(yield* root.operator.prune({ updatedBefore, agent: "other" }), [])
      assert.deepStrictEqual(yield* root.operator.prune({ updatedBefore, tenant: "acme" }), [runId])
    }).pipe(Effect.scoped)
  )

  it.live("list, pause, resume and run schedules", () =>
    Effect.gen(function* () {
      const store = yield* scheduled
      const { url } = yield* serve({
        replies: [final("Yes.")],
        agent: clerk,
        store,
        options: { worker: false },
        with: access
      })
      const { operator } = yield* clientOf(url, as("root"))
      const [listed] = yield* operator.schedules({ agent: "clerk" })
      assert.deepInclude(listed, { name: "hourly", cron: "0 * * * *", timeZone: "UTC" })
      assert.strictEqual(listed?.last?.runId, "hourly@1970-01-01T01:00:00.000Z")
      yield* operator.pauseSchedule("hourly", { reason: "audit" })
      const [paused] = yield* operator.schedules()
      assert.deepInclude(paused?.paused, { by: "Rita (root)", reason: "audit" })
      assert.match(yield* operator.runSchedule("hourly"), /^hourly@2\S+Z$/)
      yield* operator.resumeSchedule("hourly")
      assert.isUndefined((yield* operator.schedules())[0]?.paused)
      assert.deepInclude(yield* Effect.flip(operator.pauseSchedule("other")), { _tag: "NotFound", what: "schedule" })
    }).pipe(Effect.scoped)
  )

  it.live("list the worker of the server, drain it, and let it take runs again", () =>
    Effect.gen(function* () {
      const { url } = yield* serve({ replies: [final("Yes.")], agent: clerk, with: access })
      const { operator, ...root } = yield* clientOf(url, as("root"))
      const [worker] = (yield* operator.processes({ agent: "clerk", version: "7" })).processes
      assert.deepInclude(worker, { state: "running", holds: [], agents: [{ name: "clerk", version: "7", runs: 0 }] })
      const target = { agent: "clerk", version: "7" }
      yield* operator.drain({ ...target, reason: "rollout" })
      assert.deepInclude((yield* operator.processes()).drains[0], { ...target, by: "Rita (root)", reason: "rollout" })
      yield* Effect.repeat(operator.processes(), { until: ({ processes }) => processes[0]?.state === "drained" })
      const runId = yield* root.start("clerk", "Ready?")
      assert.strictEqual((yield* root.head(runId)).status.type, "queued")
      yield* operator.undrain(target)
      yield* Stream.runDrain(root.follow(runId, { until: "end" }))
      assert.strictEqual((yield* root.head(runId)).status.type, "completed")
      assert.deepInclude(yield* Effect.flip(operator.drain({ process: "nobody" })), {
        _tag: "NotFound",
        what: "process"
      })
    }).pipe(Effect.scoped)
  )

  it.live("are forbidden to all other callers", () =>
    Effect.gen(function* () {
      const { url } = yield* serve({ store: yield* scheduled, with: access })
      const { operator } = yield* clientOf(url, as("eva"))
      const refused = yield* Effect.all(
        [
          operator.overview(),
          operator.requeue({ need: "failed" }),
          operator.prune({ updatedBefore: 0 }),
          operator.processes(),
          operator.drain({ agent: "clerk" }),
          operator.undrain({ agent: "clerk" }),
          operator.schedules(),
          operator.pauseSchedule("hourly"),
          operator.resumeSchedule("hourly"),
          operator.runSchedule("hourly")
        ].map(Effect.flip)
      )
      for (const error of refused) assert.strictEqual(error._tag, "Forbidden")
    }).pipe(Effect.scoped)
  )
})

describe("POST /runs/:id/cancel", () => {
  it.live("returns what was ended, and names workers only to an operator", () =>
    Effect.gen(function* () {
      const { url } = yield* serve({ model: spoken(yield* Queue.unbounded<string>()), with: access })
      const [eva, root] = [yield* clientOf(url, as("eva")), yield* clientOf(url, as("root"))]
      const started = Effect.gen(function* () {
        const runId = yield* eva.start("clerk", "Wait.")
        yield* Stream.runDrain(Stream.takeUntil(eva.follow(runId), ({ type }) => type === "model_started"))
        return runId
      })
      const own = yield* started
      assert.deepStrictEqual(yield* eva.cancel(own), { runs: [own], requests: [own], calls: [] })
      assert.deepStrictEqual(yield* eva.cancel(own), { runs: [], requests: [], calls: [] })
      const other = yield* started
      const { runs, workers } = yield* root.cancel(other)
      assert.deepStrictEqual(runs, [other])
      assert.lengthOf(workers ?? [], 1)
    }).pipe(Effect.scoped)
  )
})
