/** The tenant, roles and labels of the caller who started a run. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Schema } from "effect"
import { TestClock } from "effect/testing"
import { type Caller, Hooks, Kernel, Message, Middleware, PromptPipeline, RunStore, Skill } from "kernai"
import { MockProvider } from "kernai/testing"
import { kernel } from "../support/kernel.ts"
import { call, native, voices } from "../support/team.ts"

const ada: Caller.Caller = { id: "ada", tenant: "acme", roles: ["boss"], labels: { team: "sales" } }

/** Returns the callers of all stored runs by run id. */
const callers = Effect.map(
  RunStore.RunStore.use((store) => store.list()),
  (heads) => Object.fromEntries(heads.map(({ caller, runId }) => [runId, caller]))
)

describe("The caller of a run", () => {
  it.effect("is that of the agents it calls and of its forks, and stays when another one resumes it", () =>
    Effect.gen(function* () {
      const lead = native("lead", { agents: [native("helper")] })
      const { provider } = voices({ lead: [call("helper", { input: "Help." }, "c"), "Done."], helper: ["Here."] })
      yield* Kernel.run(lead, "Go.", { runId: "run", provider, caller: ada })
      yield* Kernel.fork("run", { runId: "fork", revision: 1 })
      const again = voices({ lead: ["Done again."] }).provider
      yield* Kernel.resume(lead, "fork", { provider: again, caller: { id: "eva", tenant: "umbrella" } })
      assert.deepStrictEqual(yield* callers, { run: ada, "run:t1/c": ada, fork: ada })
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("is stored with submitted and scheduled runs", () =>
    Effect.gen(function* () {
      const clerk = native("clerk")
      const provider = MockProvider.make("Done.")
      const hourly = { name: "hourly", cron: "0 * * * *", timeZone: "UTC", caller: ada, provider }
      yield* Kernel.submit(clerk, "Go.", { runId: "sent", caller: ada, provider })
      const schedule = yield* Effect.forkChild(Kernel.schedule(clerk, "Go.", hourly))
      yield* TestClock.adjust("61 minutes")
      yield* Fiber.interrupt(schedule)
      const stored = yield* callers
      const ids = ["sent", "hourly@1970-01-01T00:00:00.000Z", "hourly@1970-01-01T01:00:00.000Z"]
      assert.deepStrictEqual(stored, Object.fromEntries(ids.map((id) => [id, ada])))
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("is refused beyond its bounds, and nothing is stored", () =>
    Effect.gen(function* () {
      const labels = { "not a name": "x" }
      const run = Kernel.run(native("clerk"), "Go.", {
        provider: MockProvider.make("Done."),
        caller: { ...ada, labels }
      })
      const error = yield* Effect.flip(run)
      assert.strictEqual(error._tag, "AgentConfigInvalid")
      assert.include(error.message, "caller.labels")
      assert.deepStrictEqual(yield* callers, {})
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("is seen by skills, hooks and middleware, also around samples and summaries", () =>
    Effect.gen(function* () {
      const seen = new Map<string, unknown>()
      const note = (who: string, caller: unknown) => void seen.set(who, caller)
      const think = Skill.make("think", {
        description: "Thinks",
        input: Schema.Struct({}),
        execute: (_, { caller, sample }) => {
          note("skill", caller)
          return sample === undefined
            ? Effect.succeed("")
            : Effect.as(sample({ messages: [Message.user("Think.")], maxTokens: 7 }), "thought")
        }
      })
      const lead = native("lead", { skills: [think], contextWindow: 2_000, reservedOutputTokens: 0 })
      const { provider } = voices({ lead: [call("think", {}, "c"), "Done."] })
      const watching = Layer.mergeAll(
        Hooks.layer({ onTurnStarted: ({ caller }) => Effect.sync(() => note("hook", caller)) }),
        Middleware.layer({
          callModel: ({ agent, caller, context, request, ...rest }, next) => {
            const { maxTokens } = request.generation
            note(maxTokens === 7 ? "sample" : maxTokens === 600 ? "summary" : "turn", caller)
            assert.deepStrictEqual([agent, context], ["lead", { plan: "gold" }])
            return next({ agent, context, request, ...rest })
          },
          callTool: (run, next) =>
            Effect.andThen(
              Effect.sync(() => note("tool", run.caller)),
              next(run)
            )
        }),
        PromptPipeline.layer({ compaction: { summarize: PromptPipeline.summarizer() } })
      )
      const history = Array.from({ length: 12 }, (_, at) => Message.user(`${at} ${"word ".repeat(200)}`))
      yield* Kernel.run(lead, "Go.", { provider, caller: ada, context: { plan: "gold" }, history }).pipe(
        Effect.provide(watching)
      )
      const who = ["hook", "sample", "skill", "summary", "tool", "turn"]
      assert.deepStrictEqual(Object.fromEntries(seen), Object.fromEntries(who.map((name) => [name, ada])))
    }).pipe(Effect.provide(kernel()))
  )
})
