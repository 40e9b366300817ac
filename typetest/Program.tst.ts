/** Types of programs: their answers, their services, and where their calls may be made. */
import { Context, Effect, Schema } from "effect"
import { Agent, Kernel, Program, Skill } from "kernai"

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
const ran = Kernel.run(office, "")
yes<Equal<Effect.Services<typeof ran>, Books | Bank | Kernel.Kernel>>()
yes<Equal<Effect.Success<typeof ran>["output"], { readonly paid: number }>>()

const plain = Program.make("plain", { run: () => Effect.succeed("done") })
const simple = Kernel.run(plain, "")
yes<Equal<Effect.Services<typeof simple>, Kernel.Kernel>>()
yes<Equal<Effect.Success<typeof simple>["output"], string>>()

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
export const shot = Program.call(photo, {})
yes<Equal<Effect.Success<typeof shot>, { readonly at: Date }>>()
