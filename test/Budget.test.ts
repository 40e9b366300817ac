import { assert, describe, it } from "@effect/vitest"
import { Duration, Result, Schema } from "effect"
import { Agent, Budget } from "kernai"

const tree = { parentRun: "r", depth: 0, agents: 1 }

describe("Budget", () => {
  it("allows a call that uses the last token, refuses the next one, and stops beyond the limit (CP-15)", () => {
    const budget = { maxTokens: 100 }
    const spent = (tokens: number) => ({ tokens, costUsd: 0 })
    assert.isUndefined(Budget.beforeCall(budget, spent(99)))
    assert.isUndefined(Budget.afterCall(budget, spent(100)))
    assert.deepStrictEqual(
      Budget.beforeCall(budget, spent(100)),
      new Budget.BudgetExhaustedError({ dimension: "tokens", used: 100, limit: 100 })
    )
    assert.deepStrictEqual(
      Budget.afterCall(budget, spent(101)),
      new Budget.BudgetExhaustedError({ dimension: "tokens", used: 101, limit: 100 })
    )
  })

  it("limits cost and tokens separately, and nothing without a limit (CP-15)", () => {
    const spent = { tokens: 1e9, costUsd: 0.5 }
    assert.strictEqual(Budget.afterCall({ maxCostUsd: 0.4 }, spent)?.dimension, "cost")
    assert.isUndefined(Budget.beforeCall({}, spent))
    assert.strictEqual(Budget.beforeCall({ maxTokens: 0 }, Budget.nothing)?.used, 0)
  })

  it("treats an undefined limit as no limit, also when it is encoded", () => {
    const given: number | undefined = undefined
    const budget = { maxTokens: given, maxCostUsd: given, deadline: given }
    assert.isUndefined(Budget.beforeCall(budget, { tokens: 1e9, costUsd: 1e9 }))
    assert.deepStrictEqual(Budget.remaining(budget, Budget.nothing), {})
    assert.strictEqual(JSON.stringify(Schema.encodeSync(Budget.ExecutionBudget)(budget)), "{}")
    const config = Agent.toConfig(Agent.make({ instructions: "", model: "m", budget }))
    assert.notProperty(Result.getOrThrow(config), "budget")
  })

  it("reports what is left, never a negative amount", () => {
    assert.deepStrictEqual(Budget.remaining({ maxTokens: 10 }, { tokens: 25, costUsd: 1 }), { tokens: 0 })
    assert.deepStrictEqual(Budget.remaining({ maxCostUsd: 3 }, { tokens: 25, costUsd: 1 }), { costUsd: 2 })
  })

  it("counts the root as an agent and denies agents that are too many or too deep (CP-15)", () => {
    const budget = { maxAgents: 2, maxDepth: 1 }
    assert.strictEqual(Budget.beforeSpawn({ ...budget, maxConcurrent: 1 }, tree)?.limit, 1)
    assert.isUndefined(Budget.beforeSpawn(budget, tree))
    assert.strictEqual(Budget.beforeSpawn(budget, { ...tree, agents: 2 })?.limit, 2)
    assert.strictEqual(Budget.beforeSpawn(budget, { ...tree, depth: 1 })?.limit, 1)
    assert.isUndefined(Budget.beforeSpawn(Budget.spawnDefaults, { ...tree, agents: 49 }))
    assert.isDefined(Budget.beforeSpawn(Budget.spawnDefaults, { ...tree, agents: 50 }))
  })

  it("decodes and encodes its wire form, with the deadline in seconds (CP-15, CP-17)", () => {
    const wire = { max_tokens: 5, max_cost_usd: 0.25, deadline_s: 1.001 }
    const budget = Schema.decodeSync(Budget.ExecutionBudget)(wire)
    assert.deepStrictEqual(budget, { maxTokens: 5, maxCostUsd: 0.25, deadline: Duration.millis(1001) })
    assert.deepStrictEqual(Schema.encodeSync(Budget.ExecutionBudget)(budget), wire)
    for (const deadline of [0, 0.4, 1.5, 2_000.001, 86_400_000.25].map(Duration.millis)) {
      const written = Schema.encodeSync(Budget.ExecutionBudget)({ deadline })
      assert.deepStrictEqual(Schema.decodeSync(Budget.ExecutionBudget)(written), { deadline })
    }
    assert.deepStrictEqual(Schema.decodeSync(Budget.SpawnBudget)({}), { maxAgents: 50, maxDepth: 1 })
    for (const bad of [
      { max_tokens: -1 },
      { deadline_s: -1 },
      { deadline_s: -1e-4 },
      { max_cost_usd: Infinity },
      { max_tokens: 1.5 }
    ]) {
      assert.throws(() => Schema.decodeSync(Budget.ExecutionBudget)(bad))
    }
  })
})
