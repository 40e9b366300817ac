import { Effect } from "effect"
import { Agent, Chat } from "kernai"

export const agent = Agent.make({ instructions: "You are good company.", model: "scripted", prose: "final" })

/** Answers, and remembers what was said in the `ChatHistory` around. `Chat.chatStream` tells the answer piece by piece. */
export const say = (text: string) => Effect.map(Chat.chat(agent, text), (result) => result.text)
