/** A cost is nothing where no price is known, and zero where the price is zero. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Agent, Kernel, Model, RunCodec, RunStore } from "kernai"
import { Evaluation, MockProvider } from "kernai/testing"
import { UiFold } from "../../src/http/internal/uiFold.ts"
import * as RunFacts from "../../src/studio/internal/runFacts.ts"
import { cost } from "../../src/studio/page/format.ts"
import { final } from "../support/blocks.ts"
import { kernel, of } from "../support/kernel.ts"
import { told } from "../support/toolbox.ts"

const free = { inputPerMillion: 0, outputPerMillion: 0 }
const agentOf = (price?: Model.Price) =>
  Agent.make({ instructions: "Answer.", model: Model.make("m", price === undefined ? {} : { price }) })

const provider = () => MockProvider.make(final("done")).withTokenCounter(() => ({ input: 5, output: 5 }))

const stateOf = (runId: string) =>
  Effect.flatMap(RunStore.RunStore, (store) => Effect.flatMap(store.load(runId), Effect.fromOption))

describe("a run of a model without a price", () => {
  it.effect("has no cost in its result, events, state and journal", () =>
    Effect.gen(function* () {
      const { events } = yield* told(agentOf(), "go", { provider: provider(), runId: "r" })
      assert.notProperty(of(events, "model_completed")[0], "costUsd")
      const end = of(events, "run_completed")[0]
      assert.isUndefined(end?.result?.costUsd)
      assert.isUndefined((yield* stateOf("r")).costUsd)
      for (const record of yield* RunStore.recordsOf("r")) {
        assert.notInclude(JSON.stringify(yield* Effect.fromResult(RunCodec.encodeRecord(record))), "costUsd")
      }
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("has no cost in an evaluation", () =>
    Effect.gen(function* () {
      const report = yield* Evaluation.run({
        cases: [{ id: "a", input: "go" }],
        scorers: [],
        ask: ({ input }) => Kernel.run(agentOf(), input, { provider: provider() })
      })
      assert.isNull(report.costUsd)
      assert.isNull(report.cases[0]?.attempts[0]?.costUsd)
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("has no cost in the studio and in `useChat`", () =>
    Effect.gen(function* () {
      const { events } = yield* told(agentOf(), "go", { provider: provider(), runId: "r" })
      const store = yield* RunStore.RunStore
      const [head] = yield* store.list({})
      const facts = yield* RunFacts.make(store)(head ?? assert.fail("no run"))
      assert.isUndefined(facts.costUsd)
      assert.strictEqual(cost(facts.costUsd), "unknown cost")
      const fold = new UiFold({ urlOf: (id) => id })
      assert.notInclude(JSON.stringify(events.flatMap((event) => fold.push(event))), "costUsd")
    }).pipe(Effect.provide(kernel()))
  )
})

describe("a run of a model whose price is zero", () => {
  it.effect("costs nothing, and says so", () =>
    Effect.gen(function* () {
      const { events } = yield* told(agentOf(free), "go", { provider: provider(), runId: "r" })
      assert.strictEqual(of(events, "model_completed")[0]?.costUsd, 0)
      assert.strictEqual((yield* stateOf("r")).costUsd, 0)
      assert.strictEqual(cost(0), "$0")
      const fold = new UiFold({ urlOf: (id) => id })
      assert.include(JSON.stringify(events.flatMap((event) => fold.push(event))), '"costUsd":0')
    }).pipe(Effect.provide(kernel()))
  )
})
