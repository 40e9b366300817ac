/**
 * An agent that pays once, for tests of workers.
 */
import { Agent, type Provider } from "kernai"
import { MockProvider } from "kernai/testing"

export const agent = Agent.make({
  name: "clerk",
  instructions: "",
  model: "scripted",
  skills: "all",
  dialect: "tools"
})

/** Its model. Answers depend only on the messages so far, so every process receives the same. */
export const clerk = (answer: string) =>
  MockProvider.layerOf(
    MockProvider.make().onCall((request: Provider.Request) =>
      request.messages.some((message) => message.role === "assistant")
        ? answer
        : { calls: [{ id: "call-a", name: "pay", input: { to: "eva" } }] }
    )
  )
