import { Message } from "kernai"
import { MockProvider } from "kernai/testing"
import { plan } from "./agent.ts"

/** A scripted model. The question it receives gives its role. */
export const model = () =>
  MockProvider.make().onCall(({ messages }) => {
    const asked = messages.filter((message) => message.role === "user").map(Message.text)
    const [first = "", next] = asked
    if (first.startsWith("Which city")) {
      return next === undefined ? `<block type="plan">${plan}</block>` : "<final>Rome is larger.</final>"
    }
    if (first.endsWith("Say which city is larger.")) return "<final>Rome</final>"
    const city = first.includes("Oslo") ? "Oslo" : "Rome"
    return next === undefined
      ? `<block type="command" name="population">{"city": "${city}"}</block>`
      : `<final>${/\d+/.exec(next)?.[0] ?? "unknown"}</final>`
  })
