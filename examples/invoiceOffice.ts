/**
 * An office that pays invoices: an agent reads each invoice, code matches it with its order, a person agrees to large
 * amounts, the money is sent, the supplier gets a mail, and three days later a reminder.
 *
 * `14-invoice-office.ts` runs it.
 */
import { Context, Effect, Schema } from "effect"
import { Agent, Program, Skill } from "kernai"

export const Fields = Schema.Struct({ supplier: Schema.String, order: Schema.String, amount: Schema.Finite })

export class Receipt extends Schema.Class<Receipt>("Receipt")({
  order: Schema.String,
  paid: Schema.Finite,
  remindedAt: Schema.String
}) {}

/** The accounts of the company. */
export class Books extends Context.Service<
  Books,
  {
    readonly match: (order: string) => Effect.Effect<{ readonly account: string }, { readonly _tag: "UnknownOrder" }>
    readonly note: (line: string) => Effect.Effect<void>
  }
>()("examples/Books") {}

export const extractor = Agent.make({
  name: "extractor",
  description: "Reads an invoice.",
  instructions: "Return the supplier, the order and the amount of the invoice.",
  model: "scripted",
  dialect: "tools",
  output: Fields
})

// Each call moves money, so a run that dies in one never repeats it by itself.
export const pay = Skill.make("pay", {
  description: "Sends money to an account",
  input: Schema.Struct({ account: Schema.String, amount: Schema.Finite }),
  execute: ({ account, amount }) => Books.use((books) => books.note(`pay ${amount} to ${account}`))
})

export const mail = Skill.make("mail", {
  description: "Sends a mail",
  input: Schema.Struct({ to: Schema.String, text: Schema.String }),
  effects: "idempotent",
  execute: ({ text, to }) => Books.use((books) => books.note(`mail ${to}: ${text}`))
})

export const office = Program.make("invoices", {
  description: "Pays an invoice",
  output: Receipt,
  agents: [extractor],
  skills: [pay, mail],
  run: Effect.fn(function* (invoice) {
    const { amount, order, supplier } = yield* Program.ask(extractor, invoice)
    const { account } = yield* Program.step(
      "match",
      Books.use((books) => books.match(order))
    )
    if (amount > 1000) yield* Program.confirm(`Pay ${amount} to ${supplier}?`, { within: "7 days" })
    yield* Program.call(pay, { account, amount })
    yield* Program.call(mail, { to: supplier, text: `${order} is paid` })
    yield* Program.sleep("3 days")
    yield* Program.call(mail, { to: supplier, text: `Please confirm ${order}` })
    const remindedAt = yield* Effect.clockWith((clock) => clock.currentTimeMillis)
    return new Receipt({ order, paid: amount, remindedAt: new Date(remindedAt).toISOString() })
  })
})
