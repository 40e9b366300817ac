/** How long a call may take whose server reports that it makes progress. */
import { assert, describe, it, layer } from "@effect/vitest"
import { Duration, Effect, Fiber, Layer, Redacted, Result, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Content, Kernel, MediaStore, RunStore, Skill, SkillRegistry } from "kernai"
import { McpServe } from "kernai/mcp"
import { MockProvider } from "kernai/testing"
import * as HostTime from "../../src/mcp/internal/hostTime.ts"
import { command, final } from "../support/blocks.ts"
import { of } from "../support/kernel.ts"
import * as Support from "../support/mcp/connect.ts"
import * as Hub from "../support/mcp/hub.ts"

/** Works for 2 seconds, and reports progress every 200 milliseconds for the first `most`. */
const work = (most: number) => ({ every: 200, most, total: 2_000 })

const working = Skill.make("work", {
  description: "Works",
  input: Schema.Struct({}),
  execute: Effect.fnUntraced(function* (_, { progress }) {
    for (let step = 1; step <= 10; step++) {
      yield* Effect.sleep("200 millis")
      yield* progress({ progress: step, total: 10 })
    }
    return "worked"
  })
})

layer(Support.platform, { excludeTestServices: true, timeout: "60 seconds" })(
  "A call longer than its timeout",
  (it) => {
    const timeout = "1 second"

    it.effect("is answered if its server reports progress, and times out if it does not, or not any more", () =>
      Effect.gen(function* () {
        const connection = yield* Support.hostile("", "", { timeout })
        assert.strictEqual(Support.textOf(yield* connection.callTool("busy", work(2_000))), "busy no more")
        for (const most of [0, 400]) {
          assert.strictEqual((yield* Effect.flip(connection.callTool("busy", work(most)))).reason, "timeout", `${most}`)
        }
      })
    )

    it.effect("times out at 'progressTimeout' although its server reports progress", () =>
      Effect.gen(function* () {
        const connection = yield* Support.hostile("", "", { timeout, progressTimeout: "1300 millis" })
        const [took, result] = yield* Effect.timed(Effect.result(connection.callTool("busy", work(2_000))))
        assert.isTrue(Result.isFailure(result) && result.failure.reason === "timeout")
        assert.isAtLeast(Duration.toMillis(took), 1_300)
        const longer = yield* connection.callTool("busy", work(2_000), { progressTimeout: "10 seconds" })
        assert.strictEqual(Support.textOf(longer), "busy no more")
      })
    )

    it.effect.each(["2025-11-25", "2026-07-28"])("is answered over HTTP, in revision %s", (protocolVersion) =>
      Effect.gen(function* () {
        const { token, url } = yield* McpServe.http()
        const headers = { authorization: `Bearer ${Redacted.value(token!)}` }
        const connection = yield* Support.connect({ url, headers, protocolVersion, timeout })
        assert.strictEqual(Support.textOf(yield* connection.callTool("work", {})), "worked")
      }).pipe(Effect.provide(SkillRegistry.layer(working)))
    )

    it.effect("is the result of its skill in a run", () =>
      Effect.gen(function* () {
        const mock = MockProvider.make(command("mcp_s__busy", work(2_000)), final("done"))
        const kernel = Kernel.layer.pipe(
          Layer.provideMerge(Hub.hub({ s: { ...Support.node(Support.hostileScript), timeout } })),
          Layer.provide([MockProvider.layerOf(mock), MediaStore.layerMemory, RunStore.layerMemory])
        )
        const agent = Agent.make({ instructions: "", model: "mock", skills: "all" })
        const events = yield* Effect.provide(Stream.runCollect(Kernel.stream(agent, "go")), kernel)
        assert.deepStrictEqual(
          of([...events], "skill_result").map(({ output }) => output),
          [[Content.text("busy no more")]]
        )
      })
    )
  }
)

describe("the time of a server", () => {
  const limited = (time: HostTime.HostTime) =>
    Effect.forkChild(Effect.result(time.within(Effect.never, "tools/call", Duration.seconds(10), Duration.seconds(25))))

  it.effect("begins anew with each report, up to the longest time", () =>
    Effect.gen(function* () {
      const time = HostTime.make()
      const fiber = yield* limited(time)
      for (let report = 1; report <= 3; report++) {
        yield* TestClock.adjust("8 seconds")
        yield* time.renew
      }
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust("1 second")
      assert.isTrue(Result.isFailure(yield* Fiber.join(fiber)))
    })
  )

  it.effect("does not count what it waits for its host, before and after a report", () =>
    Effect.gen(function* () {
      const time = HostTime.make()
      const fiber = yield* limited(time)
      yield* TestClock.adjust("5 seconds")
      const asking = yield* Effect.forkChild(time.during(Effect.sleep("1 hour")))
      yield* TestClock.adjust("30 minutes")
      yield* time.renew
      yield* TestClock.adjust("30 minutes")
      yield* Fiber.join(asking)
      yield* TestClock.adjust("9 seconds")
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust("1 second")
      assert.isTrue(Result.isFailure(yield* Fiber.join(fiber)))
    })
  )
})
