import { Effect } from "effect"
import { Agent, Chat } from "kernai"

export const agent = Agent.make({
  instructions: "You are good company.",
  model: "scripted",
  dialect: "auto",
  prose: "final"
})

/**
 * Answers a message, and stores the conversation in the `ChatHistory` in context. `Chat.chatStream` emits the answer
 * piece by piece.
 */
export const say = (text: string) => Effect.map(Chat.chat(agent, text), (result) => result.text)
