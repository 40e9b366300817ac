/** A process that makes model calls under a shared budget, eight at once, and prints how many it could make. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Agent, Budget, BudgetStore, Kernel, MediaStore, ProtocolRegistry, RunStore, SkillRegistry } from "kernai"
import { SqlBudgetStore } from "kernai/sql"
import { MockProvider } from "kernai/testing"
import * as Redacted from "effect/Redacted"

const [where = "", name = ""] = process.argv.slice(2)

const budgets = BudgetStore.layerLimits(({ caller }) => [
  Budget.shared(`tenant:${caller?.tenant}`, { costUsd: 1, per: "1 day" })
])
const store = where.startsWith("postgres")
  ? SqlBudgetStore.layerPg({ url: Redacted.make(where) })
  : SqlBudgetStore.layerSqlite(where)
const kernel = Kernel.layerNoProvider.pipe(
  Layer.provide([budgets, SkillRegistry.layer(), ProtocolRegistry.layer(), MediaStore.layerMemory]),
  Layer.provideMerge(Layer.merge(RunStore.layerMemory, store)),
  Layer.orDie
)

const price = { inputPerMillion: 100_000, outputPerMillion: 100_000 }
const model = { id: "m", capabilities: ["text"] as const, price }
const clerk = Agent.make({ name: "clerk", instructions: "", model, generation: { maxTokens: 1 } })

const made = Effect.forEach(
  Array.from({ length: 40 }, (_, index) => index),
  (index) =>
    Kernel.run(clerk, "Go.", {
      runId: `${name}${index}`,
      provider: MockProvider.make({
        text: '<block type="final">Done.</block>',
        usage: { inputTokens: { total: 1 }, outputTokens: { total: 0 } }
      }),
      caller: { id: name, tenant: "acme" }
    }).pipe(
      Effect.as(1),
      Effect.catchTag("BudgetExhaustedError", () => Effect.succeed(0))
    ),
  { concurrency: 8 }
)

process.stdout.write(JSON.stringify(await Effect.runPromise(Effect.provide(made, kernel))))
