import { Effect, Ref } from "effect"
import { Agent, Kernel, Message } from "kernai"

export const agent = Agent.make({ instructions: "You are good company.", model: "scripted", prose: "final" })

/** A conversation that remembers what was said. */
export const make = Effect.map(Ref.make<ReadonlyArray<Message.Message>>([]), (history) => ({
  history: Ref.get(history),
  say: Effect.fn("say")(function* (text: string) {
    const result = yield* Kernel.run(agent, text, { history: yield* Ref.get(history) })
    yield* Ref.update(history, (before) => [...before, ...result.messages])
    return result.text
  })
}))
