import { Effect, Layer, Schema } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { Agent, Kernel, Policy, Skill } from "kernai"
import { HttpKernel } from "kernai/http"
import { SqlRunStore } from "kernai/sql"
import { MockProvider } from "kernai/testing"
import { page } from "./page.ts"

/** Sending cannot be taken back, so the page asks before it. */
const send = Skill.make("send", {
  description: "Sends a letter",
  input: Schema.Struct({ to: Schema.String }),
  execute: ({ to }) => Effect.succeed(`sent to ${to}`)
})

export const agent = Agent.make({
  name: "clerk",
  instructions: "You write letters.",
  model: "scripted",
  dialect: "auto",
  skills: [send]
})

const careful = Policy.layer((call) =>
  Effect.succeed(call.effects === "write" ? Policy.confirm("a letter cannot be taken back") : Policy.allowed)
)

// A scripted model: it writes one letter, then reports the result.
const model = MockProvider.layerOf(
  MockProvider.make().onCall(({ messages }) =>
    messages.some(({ role }) => role === "assistant")
      ? "<final>That is all.</final>"
      : `<block type="command" name="send">{"to": "Oslo"}</block>`
  )
)

/** The kernel over a file of runs, in which the page finds them again after a restart. */
export const kernel = (file: string) =>
  Kernel.layerWith({ provider: model, skills: [send], store: SqlRunStore.layerSqlite(file) }).pipe(
    Layer.provide(careful)
  )

/**
 * The page, and the routes it uses.
 *
 * Only this machine is admitted. `Access.bearer` and `Access.cookie` of `kernai/http` admit others by their credentials.
 */
export const app = Layer.merge(
  HttpRouter.add("GET", "/", HttpServerResponse.html(page)),
  HttpKernel.layer({ agents: [agent] })
)
