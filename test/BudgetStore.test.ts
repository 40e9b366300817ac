/** Budgets that runs share, over their models. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Result, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Budget, BudgetStore, type Caller, Kernel, KernelError, Message, PromptPipeline, Provider, Skill } from "kernai"
import { MockProvider } from "kernai/testing"
import { budgetStoreSuite } from "./support/budgetStore.ts"
import { kernel } from "./support/kernel.ts"
import { call, native, slowly, voices } from "./support/team.ts"

budgetStoreSuite("BudgetStore.layerMemory", BudgetStore.layerMemory)

const acme: Caller.Caller = { id: "ada", tenant: "acme" }
const usage = (tokens: number) => ({ inputTokens: { total: tokens }, outputTokens: { total: 0 } })

/** A budget of a tenant for a day, of so many tokens. */
const perTenant = (tokens: number) =>
  BudgetStore.layerLimits(({ caller }) =>
    caller?.tenant === undefined ? [] : [Budget.shared(`tenant:${caller.tenant}`, { tokens, per: "1 day" })]
  )

const services = (tokens: number) =>
  Layer.provideMerge(Layer.merge(kernel(), perTenant(tokens)), BudgetStore.layerMemory)

const clerk = native("clerk", { generation: { maxTokens: 10 } })

const spent = (tenant: string) =>
  BudgetStore.BudgetStore.use((store) => store.spent(Budget.shared(`tenant:${tenant}`, { tokens: 1, per: "1 day" })))

/** The tag of an error, or the text of a result. */
const end = <E extends { readonly _tag: string }, R>(run: Effect.Effect<{ readonly text: string }, E, R>) =>
  Effect.map(Effect.result(run), (result) => (Result.isSuccess(result) ? result.success.text : result.failure._tag))

describe("a budget that runs share by a key", () => {
  it.effect("ends the runs of a tenant until its next period, and no other run", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make({ text: "Done.", usage: usage(60) })
      const run = (runId: string, caller?: Caller.Caller) => Kernel.run(clerk, "Go.", { runId, provider, caller })
      assert.strictEqual(yield* end(run("1", acme)), "Done.")
      assert.strictEqual(yield* end(run("2", acme)), "Done.")
      const error = yield* Effect.flip(run("3", acme))
      assert.strictEqual(error._tag, "BudgetExhaustedError")
      assert.deepInclude({ ...error }, { key: "tenant:acme", used: 120, limit: 100, renewsAt: 86_400_000 })
      assert.strictEqual(yield* end(run("4", { id: "bob", tenant: "umbrella" })), "Done.")
      assert.strictEqual(yield* end(run("5")), "Done.")
      assert.strictEqual(provider.calls.length, 4)
      yield* TestClock.adjust("1 day")
      assert.strictEqual(yield* end(Kernel.resume(clerk, "3", { provider })), "Done.")
      assert.deepStrictEqual(yield* spent("acme"), { tokens: 60, costUsd: 0 })
    }).pipe(Effect.provide(services(100)))
  )

  it.effect("lets a call wait for others that may use the rest", () =>
    Effect.gen(function* () {
      const provider = slowly(MockProvider.make({ text: "Done.", usage: usage(50) }), 10_000)
      const run = (runId: string) => Effect.forkChild(end(Kernel.run(clerk, "Go.", { runId, provider, caller: acme })))
      const [first, second] = [yield* run("1"), yield* run("2")]
      yield* TestClock.adjust("9 seconds")
      assert.isUndefined(second.pollUnsafe())
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(yield* Fiber.join(first), "Done.")
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(yield* Fiber.join(second), "BudgetExhaustedError")
    }).pipe(Effect.provide(services(40)))
  )

  it.effect("counts samples of skills and summaries, too", () =>
    Effect.gen(function* () {
      const think = Skill.make("think", {
        description: "Thinks",
        input: Schema.Struct({}),
        execute: (_, { sample }) =>
          sample === undefined
            ? Effect.succeed("")
            : Effect.as(sample({ messages: [Message.user("Think.")], maxTokens: 7 }), "thought")
      })
      const lead = native("lead", { skills: [think], contextWindow: 2_000, reservedOutputTokens: 0 })
      const { provider, requests } = voices({
        lead: [
          { ...Object(call("think", {}, "c")), usage: usage(1) },
          { text: "Done.", usage: usage(1) }
        ]
      })
      const history = Array.from({ length: 12 }, (_, at) => Message.user(`${at} ${"word ".repeat(200)}`))
      const compacting = PromptPipeline.layer({ compaction: { summarize: PromptPipeline.summarizer() } })
      yield* Effect.provide(Kernel.run(lead, "Go.", { provider, caller: acme, history }), compacting)
      assert.isAbove(requests.length, 3)
      assert.strictEqual((yield* spent("acme")).tokens, requests.length)
    }).pipe(Effect.provide(services(100_000)))
  )

  it.effect("counts a reply that is cut by its estimate, and a call without a reply not at all", () =>
    Effect.gen(function* () {
      const failing: Provider.ProviderShape = {
        name: "failing",
        stream: () =>
          Stream.fail(new Provider.ProviderError({ provider: "failing", reason: "authentication", detail: "" }))
      }
      assert.strictEqual(yield* end(Kernel.run(clerk, "Go.", { provider: failing, caller: acme })), "ProviderError")
      assert.deepStrictEqual(yield* spent("acme"), Budget.nothing)
      const hanging: Provider.ProviderShape = {
        name: "hanging",
        stream: () =>
          Stream.concat(Stream.make({ type: "text-delta", id: "0", delta: "x".repeat(400) } as const), Stream.never)
      }
      const run = yield* Effect.forkChild(Kernel.run(clerk, "Go.", { provider: hanging, caller: acme }))
      yield* TestClock.adjust("1 second")
      yield* Fiber.interrupt(run)
      assert.isAtLeast((yield* spent("acme")).tokens, 100)
    }).pipe(Effect.provide(services(100_000)))
  )

  it.effect("refuses a model without a price where it limits USD, and is asked for each agent", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make("Done.", "Done.")
      const limits = BudgetStore.layerLimits(({ agent }) =>
        agent === "clerk" ? [Budget.shared("all", { costUsd: 1 })] : [Budget.shared("all", { tokens: 100_000 })]
      )
      const refused = yield* Effect.flip(Effect.provide(Kernel.run(clerk, "Go.", { provider }), limits))
      assert.strictEqual(refused._tag, "ExtensionFailed")
      assert.include(refused.message, "the model 'clerk' has no price")
      assert.strictEqual(provider.calls.length, 0)
      assert.strictEqual(yield* end(Effect.provide(Kernel.run(native("other"), "Go.", { provider }), limits)), "Done.")
    }).pipe(Effect.provide(services(100)))
  )

  it.effect("adds to those of other layers, beside it and around the kernel", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make({ text: "Done.", usage: usage(5) })
      const all = (key: string) => BudgetStore.layerLimits(() => [Budget.shared(key, { tokens: 1_000 })])
      const around = Layer.provide(Kernel.layerNoProvider, all("a"))
      yield* Effect.provide(Kernel.run(clerk, "Go.", { provider }), [all("b"), all("c"), around])
      const store = yield* BudgetStore.BudgetStore
      for (const key of ["a", "b", "c"]) {
        assert.strictEqual((yield* store.spent(Budget.shared(key, { tokens: 1 }))).tokens, 5, key)
      }
    }).pipe(Effect.provide(services(100)))
  )
})

describe("Budget.shared", () => {
  it("has a key, at least one limit from zero on, and a period that passes", () => {
    assert.deepStrictEqual(Budget.shared("k", { costUsd: 0, per: "1 hour" }), {
      key: "k",
      costUsd: 0,
      perMs: 3_600_000
    })
    assert.deepStrictEqual(Budget.shared("k", { tokens: 5 }), { key: "k", tokens: 5 })
    for (const wrong of [
      () => Budget.shared("", { tokens: 1 }),
      () => Budget.shared("k".repeat(257), { tokens: 1 }),
      () => Budget.shared("k", {}),
      () => Budget.shared("k", { tokens: NaN }),
      () => Budget.shared("k", { costUsd: -1 }),
      () => Budget.shared("k", { tokens: 1, per: 0 }),
      () => Budget.shared("k", { tokens: 1, per: Infinity })
    ]) {
      assert.throws(wrong, KernelError.ConfigInvalid)
    }
  })

  it("has periods that begin at multiples of their length since 1970", () => {
    const day = Budget.shared("k", { tokens: 1, per: "1 day" })
    assert.deepStrictEqual(Budget.periodOf(day, 86_400_001), { since: 86_400_000, until: 172_800_000 })
    assert.deepStrictEqual(Budget.periodOf({}, 5), { since: 0, until: undefined })
  })
})
