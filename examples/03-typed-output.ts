/**
 * An answer with a type.
 *
 * The model receives the JSON Schema of the answer. An answer that does not fit is returned to it with the reason,
 * until one fits or the turns are used up.
 *
 * npm run example -- examples/03-typed-output.ts
 */
import { Console, Effect, Layer, Schema, Stream } from "effect"
import { Agent, Kernel, SkillRegistry } from "kernai"
import { MockProvider } from "kernai/testing"

const Ticket = Schema.Struct({
  title: Schema.String,
  priority: Schema.Literals(["low", "high"]),
  due: Schema.DateFromString
})

const agent = Agent.make({
  instructions: "You turn complaints into tickets.",
  model: "scripted",
  output: Ticket
})

const program = Kernel.stream(agent, "The lift is stuck with people in it!").pipe(
  Stream.tap((event) =>
    event.type === "model_completed" && event.outcome.type === "corrective"
      ? Console.log(event.outcome.corrective)
      : Effect.void
  ),
  Stream.runForEach((event) => {
    if (event.type !== "run_completed" || event.result === undefined) return Effect.void
    // Decoded: `due` is a Date.
    const { due, priority, title } = event.result.output
    return Console.log(`${title} (${priority}), due ${due.getUTCFullYear()}`)
  })
)

const KernelLive = Kernel.layerMemory.pipe(
  Layer.provide([
    SkillRegistry.layer(),
    MockProvider.layer(
      `<block type="final">{"title": "Lift stuck", "priority": "urgent", "due": "2026-12-01"}</block>`,
      `<block type="final">{"title": "Lift stuck", "priority": "high", "due": "2026-12-01"}</block>`
    )
  ])
)

await Effect.runPromise(Effect.provide(program, KernelLive))

// Prints:
// Your answer does not have the required shape: Expected "low" | "high"
//   at ["priority"]. Send it again the same way, as nothing but JSON that fits the schema.
// Lift stuck (high), due 2026
