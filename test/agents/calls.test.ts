import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Result, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Kernel, ModelRegistry, Policy, type RunEvent, RunStore, Skill } from "kernai"
import { Grammar } from "kernai/provider"
import { kernel, of } from "../support/kernel.ts"
import { call, calls, lastAsked, model, native, slowly, voices } from "../support/team.ts"
import { stored } from "../support/workflow.ts"

const listen = <E, R>(events: Stream.Stream<RunEvent.RunEvent, E, R>) => {
  const heard: Array<RunEvent.RunEvent> = []
  return Effect.as(
    Stream.runForEach(events, (event) => Effect.sync(() => heard.push(event))),
    heard
  )
}

const researcher = native("researcher", { description: "Finds facts." })

describe("an agent that calls another", () => {
  it.effect("runs it by a native call as a child run, and reads its answer as the result of the call", () =>
    Effect.gen(function* () {
      const lead = native("lead", { agents: [researcher] })
      const { provider, requests } = voices({
        lead: [call("researcher", { input: "How old is it?" }, "call-7"), "It is 7."],
        researcher: ["Seven years."]
      })
      const events = yield* listen(Kernel.stream(lead, "Age?", { runId: "run", provider }))
      assert.deepStrictEqual(lastAsked(requests, "researcher"), ["How old is it?"])
      assert.deepStrictEqual(lastAsked(requests, "lead"), ["Age?", "Seven years."])
      const [child] = of(events, "run_started").filter(({ depth }) => depth === 1)
      assert.deepInclude(child, { runId: "run:t1/call-7", rootRunId: "run", parentRunId: "run", agent: "researcher" })
      assert.deepInclude(of(events, "task_complete")[0], {
        agent: "researcher",
        callId: "call-7",
        childRunId: "run:t1/call-7",
        result: "Seven years."
      })
      const end = events.at(-1)
      assert.strictEqual(end?.type === "run_completed" ? end.result?.text : undefined, "It is 7.")
      assert.strictEqual((yield* stored("run:t1/call-7")).status.type, "completed")
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("lists it among its skills, and runs it by a command block", () =>
    Effect.gen(function* () {
      const lead = Agent.make({ name: "lead", instructions: "", model: model("lead"), agents: [researcher] })
      const { provider, requests } = voices({
        lead: [
          `<block type="command" name="/skills"></block>`,
          `<block type="command" name="researcher">How old?</block>`,
          `<block type="final">7</block>`
        ],
        researcher: ["Seven."]
      })
      const result = yield* Kernel.run(lead, "Age?", { runId: "run", provider })
      assert.strictEqual(result.text, "7")
      const asked = lastAsked(requests, "lead").join("\n")
      assert.include(asked, "researcher")
      assert.include(asked, "Finds facts.")
      assert.include(asked, `<block type="result" name="researcher">Seven.</block>`)
      assert.deepStrictEqual(lastAsked(requests, "researcher"), ["How old?"])
      assert.strictEqual((yield* stored("run:t2/0")).agent, "researcher")
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("passes it an input of its schema, and receives its typed answer", () =>
    Effect.gen(function* () {
      const City = Schema.Struct({ city: Schema.String, people: Schema.Int })
      const counter = Agent.make({
        name: "counter",
        instructions: "",
        model: model("counter"),
        dialect: "tools",
        input: Schema.Struct({ country: Schema.String, since: Schema.Date }),
        output: City
      })
      const lead = native("lead", { agents: [counter] })
      const { provider, requests } = voices({
        lead: [
          call("counter", { country: 7 }, "bad"),
          call("counter", { country: "IT", since: "2020-01-01" }, "good"),
          "done"
        ],
        counter: ["no JSON", `{"city": "Rome", "people": 2800000}`]
      })
      const result = yield* Kernel.run(lead, "Count", { runId: "run", provider })
      assert.deepStrictEqual(
        result.calls.map(({ isError }) => isError),
        [true, false]
      )
      assert.include(lastAsked(requests, "lead").join("\n"), "country")
      assert.strictEqual(lastAsked(requests, "counter")[0], `{"country":"IT","since":"2020-01-01T00:00:00.000Z"}`)
      assert.include(lastAsked(requests, "lead"), `{"city": "Rome", "people": 2800000}`)
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("runs several concurrently if its `concurrency` allows, else one after the other", () =>
    Effect.gen(function* () {
      const took = (concurrency: number) =>
        Effect.gen(function* () {
          const lead = native("lead", { agents: [researcher], concurrency })
          const { provider } = voices({
            lead: [calls(["researcher", { input: "a" }], ["researcher", { input: "b" }]), "done"],
            researcher: ["found"]
          })
          const run = Kernel.stream(lead, "go", { runId: `run-${concurrency}`, provider: slowly(provider, 100) })
          const fiber = yield* Effect.forkChild(listen(run))
          yield* TestClock.adjust("1 second")
          const ends = of(yield* Fiber.join(fiber), "task_complete")
          return ends.map(({ at, durationMs }) => [at - (ends[0]?.at ?? 0), durationMs])
        })
      assert.deepStrictEqual(yield* took(2), [
        [0, 100],
        [0, 100]
      ])
      assert.deepStrictEqual(yield* took(1), [
        [0, 100],
        [100, 100]
      ])
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("counts the usage of the agents it calls against its budget and against theirs", () =>
    Effect.gen(function* () {
      const usage = { inputTokens: { total: 10 }, outputTokens: { total: 0 } }
      const small = native("small", { budget: { maxTokens: 15 } })
      const lead = native("lead", { agents: [small], budget: { maxTokens: 100 } })
      const { provider } = voices({
        lead: [
          { ...ask("small"), usage },
          { text: "done", usage }
        ],
        small: [{ ...ask("nothing"), usage }]
      })
      const result = yield* Kernel.run(lead, "go", { provider })
      // Two calls of the small one, which its own budget of 15 ended, do not end the lead.
      assert.strictEqual(result.usage.inputTokens, 40)
      assert.include(result.calls[0]?.error, "15")
      const poor = native("lead", { agents: [native("small")], budget: { maxTokens: 15 } })
      const error = yield* Effect.flip(Kernel.run(poor, "go", { provider }))
      assert.strictEqual(error._tag, "BudgetExhaustedError")
    }).pipe(Effect.provide(kernel()))
  )
})

const ask = (name: string) => ({ calls: [{ id: name, name, input: { input: "go" } }] })

describe("agents below agents", () => {
  const helper = native("helper", { skills: ["pay"] })
  const middle = native("middle", { agents: [helper] })
  const lead = native("lead", { agents: [middle] })
  const pay = (paid: Array<string>) =>
    Skill.make("pay", {
      description: "Pays",
      input: Schema.Struct({ to: Schema.String }),
      execute: ({ to }) =>
        Effect.as(
          Effect.sync(() => paid.push(to)),
          "paid"
        )
    })
  const script = {
    lead: [call("middle", { input: "pay Eva" }), "all paid"],
    middle: [call("helper", { input: "pay Eva now" }), "she is paid"],
    helper: [call("pay", { to: "Eva" }), "paid"]
  }
  const careful = Policy.layer((asked) =>
    Effect.succeed(asked.name === "pay" ? Policy.confirm("it costs") : Policy.allowed)
  )

  it.effect("ask a person through the root run, with the path of agents, and continue after the answer", () => {
    const paid: Array<string> = []
    return Effect.gen(function* () {
      const { provider } = voices(script)
      const events = yield* listen(Kernel.stream(lead, "go", { runId: "run", provider }))
      assert.strictEqual(of(events, "paused").filter(({ depth }) => depth === 0).length, 1)
      const open = yield* Kernel.questions("run")
      assert.deepStrictEqual(
        open.map(({ agents, name, runId }) => ({ agents, name, runId })),
        [{ agents: ["lead", "middle", "helper"], name: "pay", runId: "run:t1/middle:t1/0" }]
      )
      assert.deepStrictEqual(paid, [])
      yield* Kernel.answer("run", [{ callId: open[0]?.callId ?? "", approved: true }])
      const result = yield* Kernel.resume(lead, "run", { provider })
      assert.strictEqual(result.text, "all paid")
      assert.deepStrictEqual(paid, ["Eva"])
      assert.deepStrictEqual(yield* Kernel.questions("run"), [])
    }).pipe(Effect.provide([careful, kernel(pay(paid))]))
  })

  it.effect("run as deep as they are nested, up to the depth limit of the tree", () => {
    const paid: Array<string> = []
    return Effect.gen(function* () {
      const { provider, requests } = voices(script)
      yield* Kernel.run(lead, "go", { provider })
      assert.deepStrictEqual(paid, ["Eva"])
      const flat = { ...lead, spawn: { maxAgents: 10, maxDepth: 1 } }
      const result = yield* Kernel.run(flat, "go", { provider })
      assert.strictEqual(result.text, "all paid")
      assert.deepStrictEqual(paid, ["Eva"])
      assert.include(lastAsked(requests, "middle").join(), "1")
    }).pipe(Effect.provide(kernel(pay(paid))))
  })

  it.effect("run without a deadlock when the callers that wait for them hold all slots", () => {
    const paid: Array<string> = []
    return Effect.gen(function* () {
      const crowd = native("crowd", {
        agents: [middle],
        concurrency: 4,
        spawn: { maxAgents: 10, maxConcurrent: 2, maxDepth: 2 }
      })
      const { provider } = voices({
        ...script,
        crowd: [calls(...Array.from({ length: 4 }, () => ["middle", { input: "pay" }] as const)), "done"]
      })
      assert.strictEqual((yield* Kernel.run(crowd, "go", { provider })).text, "done")
      assert.strictEqual(paid.length, 4)
    }).pipe(Effect.provide(kernel(pay(paid))))
  })

  it.effect("stop calling themselves at the depth limit of the tree", () =>
    Effect.gen(function* () {
      const again = native("again", { agents: ["again"], spawn: { maxAgents: 10, maxDepth: 3 } })
      const { provider, requests } = voices({ again: [call("again", { input: "deeper" }), "back"] })
      const result = yield* Kernel.run(again, "go", { runId: "run", provider })
      assert.strictEqual(result.text, "back")
      // Four runs of two turns each; the deepest was refused a fifth.
      assert.strictEqual(requests.length, 8)
      assert.strictEqual((yield* stored("run:t1/again:t1/0:t1/0")).depth, 3)
    }).pipe(Effect.provide(kernel()))
  )
})

describe("agents in the list of another agent", () => {
  const problem = (options: Partial<Agent.Options<never>>) => Agent.problem(native("lead", options))

  it("are refused when one is unknown, with the names that are known", () => {
    assert.deepInclude(problem({ agents: [researcher, "nobody"] }), {
      _tag: "AgentConfigInvalid",
      path: "agents[1]",
      reason: "unknown agent 'nobody'; known: 'lead', 'researcher'"
    })
  })

  it("are refused when they share a name, are listed twice or have a name that no call can have", () => {
    assert.include(problem({ agents: [researcher, native("researcher")] })?.reason, "another agent")
    assert.include(problem({ agents: [researcher, "researcher"] })?.reason, "twice")
    assert.include(problem({ agents: [native("two words")] })?.reason, "letters")
    assert.deepInclude(problem({ agents: [native("deep", { maxSteps: -1 })] }), { path: "deep.maxSteps" })
  })

  it.effect("fail the run before it is stored when one is unknown", () =>
    Effect.gen(function* () {
      const { provider } = voices({})
      const error = yield* Effect.flip(Kernel.run(native("lead", { agents: ["nobody"] }), "go", { provider }))
      assert.strictEqual(error._tag, "AgentConfigInvalid")
      assert.deepStrictEqual(yield* RunStore.RunStore.use((store) => store.list({})), [])
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("are denied by a policy that names them", () => {
    const denied = Policy.layerRules({ deny: [{ name: "researcher", reason: "not today" }] })
    return Effect.gen(function* () {
      const { provider, requests } = voices({ lead: [call("researcher", { input: "?" }), "well"] })
      const result = yield* Kernel.run(native("lead", { agents: [researcher] }), "go", { provider })
      assert.strictEqual(result.calls[0]?.error, "not today")
      assert.strictEqual(requests.length, 2)
    }).pipe(Effect.provide([denied, kernel()]), Effect.orDie)
  })

  it.effect("return an error to the model that calls them when their vendor has no key", () =>
    Effect.gen(function* () {
      const far = native("far", { model: "nowhere/model" })
      const { provider } = voices({ lead: [call("far", { input: "?" }), "well"] })
      const result = yield* Kernel.run(native("lead", { agents: [far] }), "go", { provider })
      assert.strictEqual(result.text, "well")
      assert.include(result.calls[0]?.error, "nowhere")
    }).pipe(Effect.provide([ModelRegistry.layer({}), kernel()]))
  )
})

describe("a plan that names agents", () => {
  it.effect("runs its tasks as these agents", () =>
    Effect.gen(function* () {
      const lead = Agent.make({ name: "lead", instructions: "", model: model("lead"), agents: [researcher] })
      const { provider, requests } = voices({
        lead: [
          `<block type="plan">{"goal": "g", "tasks": [{"id": "a", "input": "find", "agent": "researcher"}]}</block>`,
          `<block type="final">done</block>`
        ],
        researcher: ["found"]
      })
      const events = yield* listen(Kernel.stream(lead, "go", { runId: "run", provider }))
      assert.deepStrictEqual(lastAsked(requests, "researcher"), ["find"])
      const [child] = of(events, "run_started").filter(({ depth }) => depth === 1)
      assert.deepInclude(child, { runId: "run:t1/a", agent: "researcher", taskId: "a" })
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("is refused when one is unknown, with the names that are known", () =>
    Effect.gen(function* () {
      const lead = Agent.make({ name: "lead", instructions: "", model: model("lead"), agents: [researcher] })
      const { provider, requests } = voices({
        lead: [
          `<block type="plan">{"goal": "g", "tasks": [{"id": "a", "input": "find", "agent": "finder"}]}</block>`,
          `<block type="final">done</block>`
        ]
      })
      const events = yield* listen(Kernel.stream(lead, "go", { provider }))
      assert.deepStrictEqual(
        of(events, "plan_rejected").map(({ reason }) => reason),
        ["unknown_agent"]
      )
      assert.include(lastAsked(requests, "lead").join("\n"), `"researcher"`)
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("is described to the model with the agents it may name", () =>
    Effect.gen(function* () {
      const lead = Agent.make({ name: "lead", instructions: "", model: model("lead"), agents: [researcher] })
      const { provider, requests } = voices({
        lead: [`<block type="command" name="/workflow"></block>`, `<block type="final">done</block>`]
      })
      yield* Kernel.run(lead, "go", { provider })
      assert.include(lastAsked(requests, "lead").join("\n"), "The agents are researcher.")
    }).pipe(Effect.provide(kernel()))
  )
})

it("an agent that lists other agents as values cannot be written as a config", () => {
  assert.deepInclude(Result.getOrUndefined(Result.flip(Agent.toConfig(native("lead", { agents: [researcher] })))), {
    _tag: "AgentConfigInvalid",
    path: "agents"
  })
})

it("a grammar lets the tasks of a plan name the listed agents, and no others", () => {
  const written = (agents?: ReadonlyArray<string>) =>
    JSON.stringify(Grammar.toJsonSchema({ skills: [], workflows: true, agents }))
  assert.include(written(["researcher"]), `"enum":["researcher"]`)
  assert.notInclude(written(), `"agent"`)
})
