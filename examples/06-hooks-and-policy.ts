/**
 * Deciding about calls: rules, a person, and hooks.
 *
 * A policy decides whether each call may run. If it asks a person, the run pauses and is resumed with the answer. Hooks
 * see a run at its phases and may change what happens next, such as the input of a call.
 *
 * npm run example -- examples/06-hooks-and-policy.ts
 */
import { Console, Effect, Layer, Schema } from "effect"
import { Agent, Hooks, Kernel, Policy, Skill } from "kernai"
import { MockProvider } from "kernai/testing"

const orders = Skill.make("orders", {
  description: "Lists the customer's orders",
  input: Schema.Struct({ customer: Schema.String }),
  effects: "read",
  execute: ({ customer }) => Effect.succeed(`${customer} has one order: #7, 20 euros`)
})

// Without declared effects a skill counts as `write`: each call may change something.
const refund = Skill.make("refund", {
  description: "Pays an order back",
  input: Schema.Struct({ order: Schema.Int, euros: Schema.Finite }),
  execute: ({ euros, order }) => Effect.as(Console.log(`  paid ${euros} euros for #${order}`), "paid")
})

const agent = Agent.make({ instructions: "You help customers.", model: "scripted", skills: "all" })

// Reading is allowed, everything else needs confirmation, and large sums are never paid. A policy that fails denies the
// call.
const Payment = Schema.Struct({ euros: Schema.Finite })
const PolicyLive = Policy.layer(
  Effect.fnUntraced(function* (call) {
    if (call.effects === "read") return Policy.allowed
    const { euros } = yield* Schema.decodeUnknownEffect(Payment)(call.input)
    return euros > 100 ? Policy.denied("more than 100 euros") : Policy.confirm("money leaves the house")
  })
)

// The customer is the user who is logged in, whatever the model wrote.
const HooksLive = Hooks.layer({
  onToolCallStarted: ({ call, context }) =>
    Effect.succeed(call.name === "orders" ? Hooks.rewrite({ customer: context["user"] ?? "nobody" }) : {}),
  onTurnCompleted: ({ state }) => Console.log(`turn ${state.turns.length} is done`)
})

const KernelLive = Kernel.layerWith({
  provider: MockProvider.layer(
    `<block type="command" name="orders">{"customer": "everybody"}</block>`,
    `<block type="command" name="refund">{"order": 7, "euros": 2000}</block>`,
    `<block type="command" name="refund">{"order": 7, "euros": 20}</block>`,
    `<block type="final">You get your 20 euros back.</block>`
  ),
  skills: [orders, refund]
}).pipe(Layer.provide([PolicyLive, HooksLive]))

const program = Effect.gen(function* () {
  const paused = yield* Effect.flip(
    Kernel.run(agent, "I want my money back.", { runId: "ticket-1", context: { user: "Ada" } })
  )
  yield* Console.log(paused.message)

  // Perhaps hours later and in another process: the answer applies once, to this call with this input.
  const open = yield* Kernel.questions("ticket-1")
  for (const { input, reason, name } of open) {
    yield* Console.log(`may ${name} run with ${JSON.stringify(input)}? ${reason}`)
  }
  const answers = open.map(({ callId }) => ({ callId, approved: true, by: "Grace" }))
  const result = yield* Kernel.resume(agent, "ticket-1", { answers })
  for (const { error, input, name } of result.calls) {
    yield* Console.log(`${name} ${JSON.stringify(input)}: ${error ?? "done"}`)
  }
  yield* Console.log(result.text)
})

await Effect.runPromise(Effect.provide(program, KernelLive))

// Prints:
// turn 1 is done
// turn 2 is done
// run 'ticket-1' is paused: approval_required
// may refund run with {"order":7,"euros":20}? money leaves the house
//   paid 20 euros for #7
// turn 3 is done
// turn 4 is done
// orders {"customer":"Ada"}: done
// refund {"order":7,"euros":2000}: more than 100 euros
// refund {"order":7,"euros":20}: done
// You get your 20 euros back.
