import { Message } from "kernai"
import { MockProvider } from "kernai/testing"

const block = (name: string, content: string) => `<block type="command" name="${name}">${content}</block>`

/** A scripted model. Its name gives its role, and its earlier replies give the next one. */
export const model = () =>
  MockProvider.make().onCall(({ messages, model }) => {
    const said = messages.filter(({ role }) => role === "assistant").length
    const read = messages.map(Message.text).join("\n")
    switch (model.id) {
      case "scripted/editor":
        return said === 0
          ? block("researcher", `{"city": "Oslo"}`) + block("researcher", `{"city": "Rome"}`)
          : block("transfer_to_writer", "")
      case "scripted/researcher": {
        const city = read.includes(`"Oslo"`) ? "Oslo" : "Rome"
        if (said === 0) return block("population", `{"city": "${city}"}`)
        return `<final>${city} has ${/\d{4,}/.exec(read)?.[0]} inhabitants.</final>`
      }
      default: {
        const facts = [...new Set(read.match(/\w+ has \d+ inhabitants/g))]
        return `<final>${facts.join(", and ")}.</final>`
      }
    }
  })
