/**
 * A desk that orders reports, which take a day to write, and answers other questions meanwhile.
 *
 * `19-background.ts` runs it.
 */
import { Context, Effect, Schema } from "effect"
import { Agent, Program, Skill } from "kernai"
import { MockProvider } from "kernai/testing"

/** The office that writes reports. */
export class Writers extends Context.Service<
  Writers,
  {
    readonly order: (topic: string) => Effect.Effect<void>
    readonly read: (topic: string) => Effect.Effect<string>
  }
>()("examples/Writers") {}

const Topic = Schema.Struct({ topic: Schema.String })

export const order = Skill.make("order", {
  description: "Orders a report",
  input: Topic,
  execute: ({ topic }) => Writers.use((writers) => writers.order(topic))
})

export const read = Skill.make("read", {
  description: "Reads a report",
  input: Topic,
  effects: "read",
  execute: ({ topic }) => Writers.use((writers) => writers.read(topic))
})

export const stock = Skill.make("stock", {
  description: "Counts the boxes of a product",
  input: Schema.Struct({ product: Schema.String }),
  effects: "read",
  execute: () => Effect.succeed("40 boxes")
})

export const report = Program.make("report", {
  description: "Has a report written, which takes a day.",
  background: true,
  input: Topic,
  skills: [order, read],
  run: Effect.fn(function* ({ topic }) {
    yield* Program.call(order, { topic })
    yield* Program.sleep("1 day")
    return yield* Program.call(read, { topic })
  })
})

export const desk = Agent.make({
  name: "desk",
  instructions: "Order long reports in the background.",
  model: "scripted",
  dialect: "tools",
  skills: [stock],
  agents: [report]
})

const script = [
  { calls: [{ id: "tea", name: "report", input: { topic: "tea", background: true } }] },
  { calls: [{ id: "boxes", name: "stock", input: { product: "tea" } }] },
  "There are 40 boxes of tea. The report is ordered.",
  "The report says that tea sells better in winter."
]

/** A model that says its lines in order, whichever process asks. */
export const model = MockProvider.make().onCall(
  ({ messages }) => script[messages.filter(({ role }) => role === "assistant").length] ?? ""
)
