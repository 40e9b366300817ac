/**
 * A join of three tables with a filter and a sum, by calls of the model and by one program.
 *
 * Both models are scripted and get the same data. Counts the replies that call something, and the tokens of all requests
 * and replies, at four characters a token.
 */
import { Effect, Layer, Schema } from "effect"
import * as Agent from "../dist/Agent.js"
import * as Code from "../dist/code/Code.js"
import * as Kernel from "../dist/Kernel.js"
import type * as Provider from "../dist/Provider.js"
import * as RunStore from "../dist/RunStore.js"
import * as Skill from "../dist/Skill.js"
import * as MockProvider from "../dist/testing/MockProvider.js"
import { kernelOn } from "./kernai.ts"
import { row, type Row } from "./support.ts"

const range = (count: number) => Array.from({ length: count }, (_, index) => index)

const table = <S extends Schema.Top>(rowSchema: S) => Schema.Struct({ rows: Schema.Array(rowSchema) })

const customers = Skill.make("customers", {
  description: "Lists the customers of a city",
  input: Schema.Struct({ city: Schema.String }),
  output: table(Schema.Struct({ id: Schema.Int, name: Schema.String, since: Schema.String })),
  effects: "read",
  execute: () => Effect.succeed({ rows: range(5).map((id) => ({ id, name: `Customer ${id}`, since: "2024-01-01" })) })
})

const orders = Skill.make("orders", {
  description: "Lists the orders of a customer",
  input: Schema.Struct({ customer: Schema.Int }),
  output: table(Schema.Struct({ id: Schema.Int, product: Schema.Int, count: Schema.Int, state: Schema.String })),
  effects: "read",
  execute: ({ customer }) =>
    Effect.succeed({
      rows: range(20).map((index) => ({
        id: customer * 100 + index,
        product: index % 6,
        count: index + 1,
        state: index % 4 === 0 ? "open" : "paid"
      }))
    })
})

const price = Skill.make("price", {
  description: "Returns the price of a product",
  input: Schema.Struct({ product: Schema.Int }),
  output: Schema.Finite,
  effects: "read",
  execute: ({ product }) => Effect.succeed(10 + product)
})

const skills = [customers, orders, price]

const program = `const { rows } = await customers({ city: "Oslo" })
const lists = await Promise.all(rows.map(({ id }) => orders({ customer: id })))
const open = lists.flatMap(({ rows }) => rows).filter(({ state }) => state === "open")
const products = [...new Set(open.map(({ product }) => product))]
const prices = new Map(await Promise.all(products.map(async (product) => [product, await price({ product })])))
return open.reduce((sum, { count, product }) => sum + count * prices.get(product), 0)`

const byCalls = [
  { name: "customers", input: { city: "Oslo" } },
  ...range(5).map((customer) => ({ name: "orders", input: { customer } })),
  ...range(6).map((product) => ({ name: "price", input: { product } }))
]

const answer = "Open orders in Oslo are worth 2780."

/** Runs a scripted model, and returns its replies that call something, and its tokens. */
const measured = async (
  calls: ReadonlyArray<{ readonly name: string; readonly input: object }>,
  more: Pick<Agent.Options<never>, "maxSteps">,
  tools: { readonly skills?: typeof skills; readonly agents?: ReadonlyArray<ReturnType<typeof Code.agent>> }
) => {
  let [replies, letters, last] = [0, 0, ""]
  const provider = MockProvider.make().onCall((request: Provider.Request) => {
    const asked = request.messages.filter(({ role }) => role === "assistant").length
    const call = calls[asked]
    const reply = call === undefined ? answer : { calls: [{ id: `call-${asked}`, ...call }] }
    last = JSON.stringify([request.messages, request.tools, reply])
    letters += last.length
    if (call !== undefined) replies++
    return reply
  })
  const desk = Agent.make({
    name: "desk",
    instructions: "Answer from the data.",
    model: "m",
    dialect: "tools",
    ...more,
    ...tools
  })
  const layer = Layer.mergeAll(kernelOn(RunStore.layerMemory), Code.layerQuickJs())
  const question = "What are the open orders in Oslo worth?"
  const { text } = await Effect.runPromise(Effect.provide(Kernel.run(desk, question, { provider }), layer))
  if (text !== answer) throw new Error(`it answered ${text}`)
  if (tools.agents !== undefined && !last.includes(`{\\"result\\":2780}`)) throw new Error(`it was given ${last}`)
  return { replies, tokens: Math.round(letters / 4) }
}

export default async (): Promise<ReadonlyArray<Row>> => {
  const plain = await measured(byCalls, { maxSteps: 20 }, { skills })
  const code = await measured([{ name: "code", input: { code: program } }], {}, { agents: [Code.agent({ skills })] })
  const medians = { ours: code.tokens, peer: plain.tokens, unit: "tokens" }
  return [
    row("code.join.replies", `a join by one program: replies that call, of ${plain.replies}`, code.replies, 1),
    row(
      "code.join.tokens",
      "a join by one program: tokens over those of calls",
      code.tokens / plain.tokens,
      0.2,
      medians
    )
  ]
}
