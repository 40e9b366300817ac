/** Types of programs: their answers, their services, and where their calls may be made. */
import { Context, Effect, Option, Schema } from "effect"
import { Agent, Kernel, Media, MediaStore, Program, Skill } from "kernai"

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const yes = <_T extends true>(): void => undefined

class Books extends Context.Service<Books, { readonly match: (order: string) => Effect.Effect<number, "unknown"> }>()(
  "type/Books"
) {}
class Bank extends Context.Service<Bank, { readonly pay: (amount: number) => Effect.Effect<string> }>()("type/Bank") {}

const pay = Skill.make("pay", {
  description: "Pays",
  input: Schema.Struct({ amount: Schema.FiniteFromString }),
  execute: ({ amount }) => Bank.use((bank) => Effect.as(bank.pay(amount), amount))
})
const reader = Agent.make({
  name: "reader",
  instructions: "",
  model: "m",
  output: Schema.Struct({ order: Schema.String })
})

const office = Program.make("office", {
  input: Schema.Struct({ text: Schema.String }),
  output: Schema.Struct({ paid: Schema.Finite }),
  skills: [pay],
  agents: [reader],
  run: ({ text }) =>
    Effect.gen(function* () {
      const { order } = yield* Program.ask(reader, text)
      const amount = yield* Program.step(
        "match",
        Books.use((books) => books.match(order))
      )
      return { paid: yield* Program.call(pay, { amount }) }
    })
})
// It needs what its steps and its skills need, and its calls are provided.
const ran = Kernel.run(office, { text: "Invoice 7" })
yes<Equal<Effect.Services<typeof ran>, Books | Bank | Kernel.Kernel>>()
yes<Equal<Effect.Success<typeof ran>["output"], { readonly paid: number }>>()

const plain = Program.make("plain", { run: () => Effect.succeed("done") })
const simple = Kernel.run(plain, "")
// The input is a value of the schema, or a text with its JSON.
export const asText = Kernel.submit(office, '{"text":"Invoice 7"}')
export const streamed = Kernel.stream(office, { text: "Invoice 7" })
export const nightly = Kernel.schedule(office, { text: "Invoice 7" }, { name: "nightly", cron: "0 3 * * *" })
const scanned = Program.make("scanned", {
  input: Schema.Struct({ pages: Schema.Array(MediaStore.Medium), on: Schema.Date }),
  run: ({ pages }) => Effect.succeed(pages.map(({ id }) => id).join())
})
export const scan = Kernel.run(scanned, { pages: [Media.fromPath("page.png")], on: new Date(0) })
const anyJson = Program.make("json", { input: Schema.Json, run: () => Effect.succeed("") })
export const ofJson = Kernel.run(anyJson, { list: [1, { deep: null }] })
class Order extends Schema.Class<Order>("Order")({ at: Schema.Date, note: Schema.Option(Schema.String) }) {
  get late() {
    return this.at.getTime() > 0
  }
}
const ordered = Program.make("ordered", { input: Order, run: ({ late }) => Effect.succeed(String(late)) })
export const ofClass = (order: Order) => Kernel.run(ordered, order)
// @ts-expect-error an order has a date
export const undated = Kernel.run(ordered, { at: 0, note: Option.none(), late: false })
// @ts-expect-error a page is a medium
export const pageless = Kernel.run(scanned, { pages: ["page.png"], on: new Date(0) })
// @ts-expect-error the value lacks its text
export const lacking = Kernel.run(office, {})
// @ts-expect-error the value has another type
export const other = Kernel.run(office, { text: 7 })
// @ts-expect-error an agent without an input schema takes texts, media and contents
export const untyped = Kernel.run(reader, { text: "Invoice 7" })
// An agent that calls programs, and a list of agents, do not care for their inputs.
export const lead = Agent.make({ instructions: "", model: "m", agents: [office, plain] })
export const known: ReadonlyArray<Agent.Agent<unknown, Skill.AnySkill<unknown>, Books | Bank>> = [office, plain]
yes<Equal<Effect.Services<typeof simple>, Kernel.Kernel>>()
yes<Equal<Effect.Success<typeof simple>["output"], string>>()

// The failures that a skill declares are those of its call.
class Declined extends Schema.TaggedError<Declined>()("Declined", { until: Schema.Date }) {}
const charge = Skill.make("charge", {
  description: "Charges",
  input: Schema.Struct({}),
  failure: Declined,
  execute: () => Effect.fail(new Declined({ until: new Date(0) }))
})
export const charged = Program.call(charge, {})
yes<Equal<Effect.Error<typeof charged>, Declined | Program.CallFailed | Skill.InvalidArguments>>()
export const paidCall = Program.call(pay, { amount: 5 })
yes<Equal<Effect.Error<typeof paidCall>, Program.CallFailed | Skill.InvalidArguments>>()

// The decoded input of a skill, and its typed result.
const called = () => Program.call(pay, { amount: 5 })
yes<Equal<Effect.Success<ReturnType<typeof called>>, number>>()
// @ts-expect-error the input is the decoded one
export const encoded = Program.call(pay, { amount: "5" })
// A call outside a program lacks the one that makes it.
yes<Equal<Effect.Services<ReturnType<typeof called>>, Program.Program>>()
// @ts-expect-error the result has the type of `output`
export const wrong = Program.make("wrong", { output: Schema.Finite, run: () => Effect.succeed("text") })

const photo = Skill.external("photo", {
  description: "Takes a photo",
  input: Schema.Struct({}),
  output: Schema.Struct({ at: Schema.Date })
})
const dated = Agent.make({ instructions: "", model: "m", input: Schema.Struct({ on: Schema.Date }) })
export const asked = Program.ask(dated, { on: new Date(0) })
// @ts-expect-error the value is the decoded one
export const encodedAsk = Program.ask(dated, { on: "1970-01-01" })
export const shot = Program.call(photo, {})
yes<Equal<Effect.Success<typeof shot>, { readonly at: Date }>>()
