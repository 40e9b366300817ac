/**
 * A model writes one program that calls its skills, instead of asking for each result in a turn of its own.
 *
 * The policy asks a person before each refund: the program stops in its middle, and continues after the answer.
 *
 * npm run example -- examples/15-code.ts
 */
import { Console, Effect, Layer, Schema } from "effect"
import { Agent, Kernel, Policy, Skill } from "kernai"
import { Code } from "kernai/code"
import { MockProvider } from "kernai/testing"

class Order extends Schema.Class<Order>("Order")({
  id: Schema.Int,
  total: Schema.Finite,
  isLate: Schema.Boolean
}) {}

const orders = Skill.make("orders", {
  description: "Lists the orders of a customer",
  input: Schema.Struct({ customer: Schema.String }),
  output: Schema.Struct({ rows: Schema.Array(Order) }),
  effects: "read",
  execute: () => Effect.succeed({ rows: [1, 2, 3].map((id) => new Order({ id, total: id * 100, isLate: id !== 2 })) })
})

const refund = Skill.make("refund", {
  description: "Pays an order back",
  input: Schema.Struct({ id: Schema.Int, amount: Schema.Finite }),
  output: Schema.String,
  execute: ({ amount, id }) => Effect.as(Console.log(`  refund ${amount} of order ${id}`), `order ${id} is refunded`)
})

const desk = Agent.make({
  instructions: "You help customers.",
  model: "m",
  agents: [Code.agent({ skills: [orders, refund] })]
})

/** What a model writes: types are allowed, and the loop costs no turn. */
const program = `
const { rows } = await orders({ customer: "Ada" })
const late = rows.filter(({ isLate }) => isLate)
const results: string[] = []
for (const { id, total } of late) results.push(await refund({ id, amount: total / 10 }))
return results`

const model = MockProvider.layer(
  `<block type="command" name="code">${program}</block>`,
  `<block type="final">Orders 1 and 3 were late: you get 40 back.</block>`
)

const askBeforeRefunds = Policy.layer(({ name }) =>
  Effect.succeed(name === "refund" ? Policy.confirm("it pays money") : Policy.allowed)
)

const Live = Layer.merge(Layer.provide(Kernel.layerWith({ provider: model }), askBeforeRefunds), Code.layerQuickJs())

/** Approves each question of a run until it has its answer. */
const approved = (runId: string): Effect.Effect<string, unknown, Layer.Success<typeof Live>> =>
  Effect.gen(function* () {
    const [question] = yield* Kernel.questions(runId)
    yield* Console.log(`${question?.name} ${JSON.stringify(question?.input)}?`)
    const answers = [{ callId: question?.callId ?? "", approved: true }]
    return yield* Kernel.resume(desk, runId, { answers }).pipe(
      Effect.map(({ text }) => text),
      Effect.catchTag("RunPaused", () => approved(runId))
    )
  })

const main = Kernel.run(desk, "My orders were late.", { runId: "run" }).pipe(
  Effect.map(({ text }) => text),
  Effect.catchTag("RunPaused", () => approved("run")),
  Effect.flatMap(Console.log)
)

await Effect.runPromise(Effect.provide(main, Live))

// Prints:
// refund {"id":1,"amount":10}?
//   refund 10 of order 1
// refund {"id":3,"amount":30}?
//   refund 30 of order 3
// Orders 1 and 3 were late: you get 40 back.
