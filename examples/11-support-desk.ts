/**
 * Several agents: a support desk that asks specialists, and hands the customer over to one of them.
 *
 * `orders` and `refunds` are called like skills. Each call is a run of its own below the desk's run, with its own
 * instructions, model and skills. A refund waits for a person, and the question is answered at the desk's run. Then the
 * desk hands the conversation over to `sales`, who answers. The models are scripted:
 * npm run example -- examples/11-support-desk.ts
 */
import { Console, Effect, Layer, Schema } from "effect"
import { Agent, Kernel, Policy, Provider, Skill } from "kernai"
import { MockProvider } from "kernai/testing"

// Skills given as values need no registration.
const track = Skill.make("track", {
  description: "Tells where an order is",
  input: Schema.Struct({ order: Schema.String }),
  effects: "read",
  execute: ({ order }) => Effect.succeed(`Order ${order} arrived broken.`)
})

const refund = Skill.make("refund", {
  description: "Pays an order back",
  input: Schema.Struct({ order: Schema.String }),
  execute: ({ order }) => Effect.succeed(`Order ${order} is paid back.`)
})

const model = (id: string) => ({ id, capabilities: ["text"] as const })

const orders = Agent.make({
  name: "orders",
  description: "Knows where every order is.",
  instructions: "You look orders up.",
  model: model("orders"),
  dialect: "tools",
  skills: [track]
})

const refunds = Agent.make({
  name: "refunds",
  description: "Pays customers back.",
  instructions: "You refund broken orders.",
  model: model("refunds"),
  dialect: "tools",
  input: Schema.Struct({ order: Schema.String, reason: Schema.String }),
  skills: [refund]
})

const sales = Agent.make({
  name: "sales",
  description: "Sells what the customer needs.",
  instructions: "You sell.",
  model: model("sales"),
  // A name refers to an agent of the team, so agents may refer to each other.
  handoffs: ["desk"]
})

const desk = Agent.make({
  name: "desk",
  instructions: "You help customers. Ask the specialists.",
  model: model("desk"),
  dialect: "tools",
  agents: [orders, refunds],
  handoffs: [sales],
  concurrency: 2
})

// The replies of each model, by the number of earlier replies in its conversation.
const call = (name: string, input: object) => ({ calls: [{ name, input }] })
const replies: { readonly [model: string]: ReadonlyArray<MockProvider.Reply> } = {
  desk: [
    call("orders", { input: "Where is order 7?" }),
    call("refunds", { order: "7", reason: "It arrived broken." }),
    call("transfer_to_sales", { reason: "They want a new one." })
  ],
  orders: [call("track", { order: "7" }), "It arrived broken."],
  refunds: [call("refund", { order: "7" }), "They have their money back."],
  sales: ["", "", "", `<block type="final">You have your money back. Here is a new one.</block>`]
}
const provider = MockProvider.make().onCall(({ messages, model }) => {
  const said = messages.filter(({ role }) => role === "assistant").length
  return replies[model.id]?.[said]
})

const program = Effect.gen(function* () {
  const paused = yield* Effect.flip(Kernel.run(desk, "My order 7 is broken.", { runId: "run" }))
  yield* Console.log(`the run ends with ${paused._tag}`)
  const open = yield* Kernel.questions("run")
  for (const { agents, input, name } of open) {
    yield* Console.log(`${agents.join(" > ")} asks: ${name} ${JSON.stringify(input)}?`)
  }
  yield* Kernel.answer(
    "run",
    open.map(({ callId }) => ({ callId, approved: true, by: "Ada" }))
  )
  const result = yield* Kernel.resume(desk, "run")
  yield* Console.log(`${result.agent} answers: ${result.text}`)
})

const KernelLive = Kernel.layerWith({ provider: Layer.succeed(Provider.Provider, provider) }).pipe(
  Layer.provide(Policy.layerRules({ confirm: [{ name: "refund", reason: "It costs money." }] }))
)

await Effect.runPromise(Effect.provide(program, KernelLive))

// Prints:
// the run ends with RunPaused
// desk > refunds asks: refund {"order":"7"}?
// sales answers: You have your money back. Here is a new one.
