import { afterAll, assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Layer, Scope } from "effect"
import { play } from "../support/durable/play.ts"
import { type Scenario, unknownIn } from "../support/durable/script.ts"
import { asked as costOf, type Cost, playCost } from "../support/durableCost.ts"
import { stores } from "../support/stores.ts"
import { load, tally } from "../support/vectors.ts"
import { quickly } from "../support/longRun.ts"

const file = load<{ readonly scenarios: ReadonlyArray<Scenario | Cost>; readonly cost?: Cost | ReadonlyArray<Cost> }>(
  "durable-run",
  // Each scenario is looked through before it is played, and each cost.
  { scenarios: true, cost: true }
)
const scenarios = file.scenarios.filter((one): one is Scenario => !("cost" in one))
const costs = [...file.scenarios.filter((one): one is Cost => "cost" in one), ...[file.cost ?? []].flat()]

const call = { toolCalls: [{ id: "call-a", name: "A", input: { x: 1 } }] }
const asked = {
  type: "paused",
  metadata: { toolCallIds: ["call-a"], approvals: [{ toolCallId: "call-a", toolName: "A", input: { x: 1 } }] }
}
const answered = ["tool_call_started:call-a", "tool_call_completed:call-a", "tool_calls_completed", "turn_completed"]

/** Scenarios of ours: what a script repeats has the names of the script wherever a run tells or is told of it. */
const further: ReadonlyArray<Scenario> = [
  {
    id: "repeated-approval",
    title: "a call that repeats is asked about again, and each answer is for one (R-25)",
    config: { tools: { A: { output: "a" } }, script: [call], maxTurns: 2, policy: { A: { decision: "confirm" } } },
    steps: [
      { do: "run", expect: { status: asked, toolsRun: [] } },
      {
        do: "resume",
        with: { approvals: [{ toolCallId: "call-a", approved: true }] },
        expect: { status: asked, toolsRun: ["call-a"] }
      },
      { do: "resume", expect: { status: asked, toolsRun: [] } },
      {
        do: "resume",
        with: { approvals: [{ toolCallId: "call-a", approved: true }] },
        expect: { status: { type: "completed", source: "max_turns" }, events: [...answered, "run_completed"] }
      }
    ],
    final: { toolExecutions: ["call-a", "call-a"], turnsCompleted: 2 }
  },
  {
    id: "repeated-verdict",
    title: "a call that repeats and was in flight takes a verdict of its own (DR-16, DR-17)",
    config: { tools: { A: { output: "a" } }, script: [call], maxTurns: 2 },
    steps: [
      // The launch of the second turn.
      { do: "run", crash: { afterRevision: 18 }, expect: { status: { type: "running" } } },
      { do: "resume", expect: { error: "InFlightToolCalls", errorFields: { call_ids: ["call-a"] } } },
      {
        do: "resume",
        with: { replay: { "call-a": "retry" } },
        expect: { status: { type: "completed", source: "max_turns" }, toolsRun: ["call-a"] }
      }
    ],
    final: { toolExecutions: ["call-a", "call-a"], turnsCompleted: 2 }
  },
  {
    id: "wordless",
    title: "a reply without words is the answer that the script says it is (DR-20)",
    config: { tools: {}, script: [{ outcome: "informational" }, { text: "" }] },
    steps: [{ do: "run", expect: { status: { type: "completed", source: "model_done" } } }],
    final: { modelCalls: 2, turnsCompleted: 2 }
  }
]

// The scenarios are the same on each store: the long run plays them on all.
for (const { isThere, name, place } of quickly(stores, ({ name }) => name === "memory" || name === "sqlite")) {
  describe.skipIf(!isThere)(`durable runs on ${name} (DR-1 to DR-23)`, () => {
    const scope = Scope.makeUnsafe()
    afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))
    const shared = Effect.runSync(
      Effect.cached(Effect.flatMap(Scope.provide(place, scope), (layer) => Layer.buildWithScope(layer, scope)))
    )
    const count = tally(`durable-run.${name}`)
    for (const scenario of [...scenarios, ...further]) {
      const unknown = unknownIn(scenario)
      if (unknown !== undefined) {
        count.skip(`${scenario.id}: ${unknown}`)
        continue
      }
      it.live(`${scenario.id}: ${scenario.title}`, () =>
        Effect.gen(function* () {
          count.ran()
          assert.deepStrictEqual(yield* Effect.provideContext(play(scenario), yield* shared), [])
        })
      )
    }
    count.report()
  })
}

/** A cost of ours. */
const pages: Cost = { id: "pages", cost: { turns: 25, toolOutputKiB: 2, replyBytes: 400 }, expect: { maxRatio: 2.1 } }

describe("what durable runs write (DR-5)", () => {
  const count = tally("durable-run.cost")
  for (const [index, cost] of [...costs, pages].entries()) {
    const name = cost.id ?? `cost-${index}`
    const asked = costOf(cost)
    if (asked === undefined) {
      count.skip(name)
      continue
    }
    it.live(`${name}: ${asked.turns.join(", ")} turns`, () => Effect.tap(playCost(asked), Effect.sync(count.ran)))
  }
  count.report()
})
