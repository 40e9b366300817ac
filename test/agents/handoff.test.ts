import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Option, Schema, Stream } from "effect"
import {
  Address,
  Agent,
  EventBus,
  Kernel,
  Message,
  ModelRegistry,
  Policy,
  Provider,
  type RunEvent,
  RunState,
  RunStore,
  Skill
} from "kernai"
import { MockProvider } from "kernai/testing"
import { kernel, of } from "../support/kernel.ts"
import { call, calls, model, native, voices } from "../support/team.ts"
import { stored } from "../support/workflow.ts"

const listen = <E, R>(events: Stream.Stream<RunEvent.RunEvent, E, R>) => {
  const heard: Array<RunEvent.RunEvent> = []
  return Effect.as(
    Stream.runForEach(events, (event) => Effect.sync(() => heard.push(event))),
    heard
  )
}

const billing = native("billing", { description: "Knows invoices." })

describe("a conversation that is handed over", () => {
  it.effect("continues with the other agent, which reads all of it and answers", () =>
    Effect.gen(function* () {
      const desk = native("desk", { handoffs: [billing] })
      const { provider, requests } = voices({
        desk: [call("transfer_to_billing", { reason: "an invoice" })],
        billing: ["", "You owe 7."]
      })
      const events = yield* listen(Kernel.stream(desk, "What do I owe?", { runId: "run", provider }))
      const [first, second] = requests
      assert.deepInclude(first?.tools?.[0], { name: "transfer_to_billing" })
      assert.include(first?.tools?.[0]?.description, "Knows invoices.")
      assert.strictEqual(second?.model.id, "billing")
      assert.include(Message.text(second?.messages[0] ?? Message.system("")), "You are billing.")
      assert.include(second?.messages.map(Message.text).join("\n"), "What do I owe?")
      assert.deepInclude(of(events, "agent_changed")[0], { from: "desk", to: "billing", callId: "transfer_to_billing" })
      const end = events.at(-1)
      const result = end?.type === "run_completed" ? end.result : undefined
      assert.deepInclude(result, { agent: "billing", text: "You owe 7.", turns: 2, runId: "run" })
      const state = yield* stored("run")
      // Workers find the run by the agent it was started with.
      assert.strictEqual(state.agent, "desk")
      assert.deepStrictEqual(state.handoff, { agent: "billing", turn: 2 })
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("can be handed back, and each agent calls its own skills", () => {
    const used: Array<string> = []
    const skill = (name: string) =>
      Skill.make(name, {
        description: name,
        input: Schema.Struct({}),
        effects: "read",
        execute: () =>
          Effect.as(
            Effect.sync(() => used.push(name)),
            name
          )
      })
    return Effect.gen(function* () {
      const clerk = native("clerk", { skills: ["look"], handoffs: ["desk"] })
      const desk = native("desk", { skills: ["greet"], handoffs: [clerk] })
      const { provider } = voices({
        desk: [call("greet"), call("transfer_to_clerk"), "", "", "", "good bye"],
        clerk: ["", "", call("look"), call("greet", {}, "again"), call("transfer_to_desk")]
      })
      const result = yield* Kernel.run(desk, "hello", { provider })
      assert.deepInclude(result, { agent: "desk", text: "good bye", turns: 6 })
      // What belongs to the other agent cannot be called.
      assert.deepStrictEqual(used, ["greet", "look"])
      assert.deepStrictEqual(
        result.calls.map(({ isError }) => isError),
        [false, false, false, true, false]
      )
    }).pipe(Effect.provide(kernel(skill("greet"), skill("look"))))
  })

  it.effect("is rendered in the dialect of the agent that takes it over, from native calls to blocks", () =>
    Effect.gen(function* () {
      const writer = Agent.make({ name: "writer", instructions: "", model: model("writer"), handoffs: ["desk"] })
      const desk = native("desk", { skills: "all", handoffs: [writer] })
      const { provider, requests } = voices({
        desk: [calls(["look", { at: "a < b" }], ["transfer_to_writer", {}])],
        writer: ["", `<block type="final">written</block>`]
      })
      const result = yield* Kernel.run(desk, "go", { provider })
      assert.strictEqual(result.text, "written")
      const sent = requests[1]?.messages.slice(1) ?? []
      assert.deepStrictEqual(
        sent.map(({ content, role }) => [role, content.map(({ type }) => type).join()]),
        [
          ["user", "text"],
          ["assistant", "text"],
          ["user", "text"],
          ["user", "text"]
        ]
      )
      assert.include(
        Message.text(sent[1] ?? Message.user("")),
        `<block type="command" name="look">{"at":"a < b"}</block>`
      )
      assert.strictEqual(Message.text(sent[2] ?? Message.user("")), `<block type="result" name="look">seen</block>`)
    }).pipe(Effect.provide(kernel(look)))
  )

  it.effect("is rendered in the dialect of the agent that takes it over, from blocks to native calls", () =>
    Effect.gen(function* () {
      const reader = native("reader", { skills: "all" })
      const desk = Agent.make({
        name: "desk",
        instructions: "",
        model: model("desk"),
        skills: "all",
        handoffs: [reader]
      })
      const { provider, requests } = voices({
        desk: [
          `<block type="plan">I look first.</block><block type="command" name="look">{"at": "here"}</block><block type="command" name="/skills"></block>`,
          `<block type="command" name="transfer_to_reader">they know</block>`
        ],
        reader: ["", "", "read"]
      })
      const result = yield* Kernel.run(desk, "go", { provider })
      assert.deepInclude(result, { text: "read", agent: "reader" })
      const sent = requests.at(-1)?.messages.slice(1) ?? []
      assert.deepStrictEqual(
        sent.map(({ content, role }) => [role, content.map(({ type }) => type).join()]),
        [
          ["user", "text"],
          ["assistant", "text,tool_use"],
          ["tool", "tool_result"],
          ["user", "text"],
          ["assistant", "tool_use"],
          ["tool", "tool_result"]
        ]
      )
      assert.deepInclude(sent[1]?.content[1], { name: "look", input: { at: "here" } })
      assert.include(Message.text(sent[1] ?? Message.user("")), "I look first.")
    }).pipe(Effect.provide(kernel(look)))
  )

  it.effect("omits the thinking of the models of earlier agents", () =>
    Effect.gen(function* () {
      const desk = native("desk", {
        handoffs: [native("billing", { skills: [] }), native("twin", { model: model("desk"), skills: [] })]
      })
      const thinking = (to: string) => ({ thinking: "I think.", ...asking(to) })
      const sent = (to: string) =>
        Effect.gen(function* () {
          const { provider, requests } = voices({
            desk: [thinking(`transfer_to_${to}`), "done"],
            billing: ["", "done"]
          })
          yield* Kernel.run(desk, "go", { provider })
          return requests[1]?.messages.flatMap(({ content }) => content.map(({ type }) => type)) ?? []
        })
      assert.notInclude(yield* sent("billing"), "thinking")
      assert.include(yield* sent("twin"), "thinking")
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("counts the turns of all agents against the maximum of the first", () =>
    Effect.gen(function* () {
      const ping = native("ping", { handoffs: ["pong"], maxSteps: 1_000 })
      const pong = native("pong", { handoffs: [ping], maxSteps: 5 })
      const { provider } = voices({ ping: [call("transfer_to_pong")], pong: [call("transfer_to_ping")] })
      const error = yield* Effect.flip(Kernel.run(pong, "go", { provider }))
      assert.deepInclude(error, { _tag: "MaxStepsReached", limit: 5 })
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("is handed over once per reply, and not at all when a policy denies it", () =>
    Effect.gen(function* () {
      const desk = native("desk", { handoffs: [billing, native("refunds")] })
      const both = calls(["transfer_to_billing", {}], ["transfer_to_refunds", {}])
      const { provider } = voices({ desk: [both, "still me"], billing: ["", "billed"] })
      const result = yield* Kernel.run(desk, "go", { provider })
      assert.deepInclude(result, { agent: "billing" })
      assert.deepStrictEqual(
        result.calls.map(({ isError }) => isError),
        [false, true]
      )
      const denied = yield* Effect.fromResult(Policy.rules({ deny: [{ name: "transfer_to_*" }] }))
      const kept = yield* Kernel.run(desk, "go", { provider }).pipe(Effect.provideService(Policy.Policy, denied))
      assert.deepInclude(kept, { agent: "desk", text: "still me" })
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("stays with its agent when the other agent's vendor has no key", () =>
    Effect.gen(function* () {
      const desk = native("desk", { handoffs: [native("far", { model: "nowhere/m" })] })
      const { provider } = voices({ desk: [call("transfer_to_far"), "I stay."] })
      const result = yield* Kernel.run(desk, "go", { provider })
      assert.deepInclude(result, { agent: "desk", text: "I stay." })
      assert.include(result.calls[0]?.error, "nowhere")
    }).pipe(Effect.provide([ModelRegistry.layer({}), kernel()]))
  )

  it.effect("is resumed in another process by the agent it was handed to", () =>
    Effect.gen(function* () {
      const failing = native("billing")
      const desk = native("desk", { handoffs: [failing] })
      const { provider, requests } = voices({ desk: [call("transfer_to_billing")], billing: ["", "after all"] })
      const down = new Provider.ProviderError({ provider: "mock", reason: "server_error", detail: "down" })
      const once = MockProvider.make().onCall((request, index) =>
        index === 0 ? call("transfer_to_billing") : request.model.id === "billing" ? down : "no"
      )
      const error = yield* Effect.flip(Kernel.run(desk, "go", { runId: "run", provider: once }))
      assert.strictEqual(error._tag, "ProviderError")
      const result = yield* Kernel.resume(desk, "run", { provider })
      assert.deepInclude(result, { agent: "billing", text: "after all" })
      assert.deepStrictEqual(
        requests.map((request) => request.model.id),
        ["billing"]
      )
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("cannot be resumed by an agent whose team lacks the current agent", () =>
    Effect.gen(function* () {
      const paused = Policy.layer((asked) =>
        Effect.succeed(asked.name === "look" ? Policy.confirm("?") : Policy.allowed)
      )
      const clerk = native("clerk", { skills: "all" })
      const { provider } = voices({ desk: [call("transfer_to_clerk")], clerk: ["", call("look"), "done"] })
      yield* Effect.flip(
        Kernel.run(native("desk", { handoffs: [clerk] }), "go", { runId: "run", provider }).pipe(Effect.provide(paused))
      )
      assert.deepStrictEqual((yield* Kernel.questions("run"))[0]?.agents, ["clerk"])
      const error = yield* Effect.flip(Kernel.resume(native("desk"), "run", { provider }))
      assert.deepInclude(error, { _tag: "AgentConfigInvalid", path: "handoffs" })
      assert.include(error.message, "clerk")
    }).pipe(Effect.provide(kernel(look)))
  )

  it.effect("has the same state when its journal is folded again, and in a fork", () =>
    Effect.gen(function* () {
      const desk = native("desk", { handoffs: [billing] })
      const { provider } = voices({ desk: [call("transfer_to_billing")], billing: ["", "billed"] })
      yield* Kernel.run(desk, "go", { runId: "run", provider })
      const store = yield* RunStore.RunStore
      const records = yield* Stream.runCollect(store.read("run"))
      assert.deepStrictEqual(RunState.fold(records), yield* stored("run"))
      const changed = records.find(({ events }) => events.some(({ type }) => type === "agent_changed"))
      yield* Kernel.fork("run", { runId: "fork", revision: changed?.revision })
      assert.deepInclude(yield* Kernel.resume(desk, "fork", { provider }), { agent: "billing", text: "billed" })
    }).pipe(Effect.provide(kernel()))
  )
})

it.effect("events of each agent are published under its own address", () =>
  Effect.gen(function* () {
    const from: Array<string> = []
    const bus = yield* EventBus.make
    const watched = {
      ...bus,
      publish: (_: RunEvent.RunEvent, address?: Address.AgentId | Address.TopicId) =>
        void from.push(address !== undefined && "key" in address ? address.key : "none")
    }
    const { provider } = voices({ desk: [call("billing", { input: "?" }), "done"], billing: ["billed"] })
    yield* Kernel.run(native("desk", { agents: [billing] }), "go", { provider }).pipe(
      Effect.provideService(EventBus.EventBus, watched)
    )
    assert.deepStrictEqual(new Set(from), new Set(["desk", "billing"]))
  }).pipe(Effect.provide(kernel()))
)

it.effect("events of other agents are published under their names, in the namespace of the run", () =>
  Effect.gen(function* () {
    const bus = yield* EventBus.EventBus
    const texts = yield* Effect.forEach(["desk-7", "billing"], (key) =>
      bus.subscribe(Address.TopicId.stream(EventBus.agentIdOf(key, "prod"))).pipe(
        Stream.filter((event) => event.type === "text_chunk"),
        Stream.map(({ text }) => text),
        Stream.runHead,
        Effect.forkChild({ startImmediately: true })
      )
    )
    const { provider } = voices({ desk: [call("billing", { input: "?" }), "done"], billing: ["billed"] })
    const address = EventBus.agentIdOf("desk-7", "prod")
    yield* Kernel.run(native("desk", { agents: [billing] }), "go", { provider, address })
    assert.deepStrictEqual(yield* Effect.forEach(texts, Fiber.join), [Option.some("done"), Option.some("billed")])
  }).pipe(Effect.provide(Layer.provideMerge(kernel(), EventBus.layerMemory)))
)

const asking = (name: string) => ({ calls: [{ id: name, name, input: {} }] })

const look = Skill.make("look", {
  description: "Looks",
  input: Schema.Struct({ at: Schema.optionalKey(Schema.String) }),
  effects: "read",
  execute: () => Effect.succeed("seen")
})
