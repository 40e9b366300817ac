/** Chats with a scripted model, and their histories. */
import { Effect } from "effect"
import { Agent, ChatHistory, Message } from "kernai"

export const agent = Agent.make({ instructions: "Talk.", model: "m" })

export const said = (messages: ReadonlyArray<Message.Message> | undefined) =>
  (messages ?? []).map((message) => `${message.role}: ${Message.text(message)}`)

export const history = Effect.flatMap(ChatHistory.ChatHistory, (history) => history.toArray)
