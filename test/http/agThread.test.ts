/** A page of AG-UI that opens its thread again, as with the client of the protocol after a reload. */
import { HttpAgent, type Message } from "@ag-ui/client"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Queue, Schema } from "effect"
import { Agent, Message as Messages, Policy, Skill } from "kernai"
import { AgUi } from "kernai/http"
import { MockProvider } from "kernai/testing"
import { serve as serveHttp, type Setup, spoken } from "../support/http.ts"
import { until } from "../support/until.ts"

const pay = Skill.make("pay", {
  description: "Pays",
  input: Schema.Struct({ to: Schema.String }),
  execute: ({ to }) => Effect.succeed({ paid: to })
})

const agent = Agent.make({ name: "clerk", instructions: "", model: "scripted", skills: "all", dialect: "tools" })

const asks = Layer.orDie(Policy.layerRules({ confirm: [{ name: "pay" }] }))

const serve = (setup: Setup) => serveHttp({ agent, routes: AgUi.layer(), skills: [pay], ...setup })

const pageOf = (url: string) => new HttpAgent({ url: `${url}/agui`, threadId: "thread1" })

const send = (page: HttpAgent, content: Message["content"], id = `user-${page.messages.length}`) =>
  Effect.promise(() => {
    page.addMessage({ id, role: "user", content: typeof content === "string" ? content : "" })
    return page.runAgent()
  })

/** The messages of a page, without those ids that the page made itself. */
const shown = (page: HttpAgent): ReadonlyArray<unknown> =>
  JSON.parse(JSON.stringify(page.messages)).map((message: Message) =>
    message.role === "user" ? { ...message, id: "" } : message
  )

describe("a page of AG-UI that opens its thread again", () => {
  it.live("has the messages that it had before, and continues the conversation", () =>
    Effect.gen(function* () {
      const model = MockProvider.make(
        { thinking: "Whom?", text: "I pay.", calls: [{ name: "pay", input: { to: "Eva" } }] },
        "Done.",
        "Eva.",
        "Yes."
      )
      const { url } = yield* serve({ model })
      const first = pageOf(url)
      yield* send(first, "Pay Eva.")
      yield* send(first, "Whom?")
      const second = pageOf(url)
      yield* Effect.promise(() => second.runAgent())
      assert.deepStrictEqual(shown(second), shown(first))
      assert.strictEqual(model.callCount, 3)
      yield* send(second, "Sure?")
      assert.deepStrictEqual(model.lastCall?.messages.filter(({ role }) => role === "user").map(Messages.text), [
        "Pay Eva.",
        "Whom?",
        "Sure?"
      ])
    }).pipe(Effect.scoped)
  )

  it.live("lacks the messages that were edited since", () =>
    Effect.gen(function* () {
      const { url } = yield* serve({ replies: ["Lima.", "More.", "Santiago."] })
      const first = pageOf(url)
      yield* send(first, "Capital of Peru?")
      yield* send(first, "And?")
      first.setMessages([])
      yield* send(first, "Capital of Chile?")
      const second = pageOf(url)
      yield* Effect.promise(() => second.runAgent())
      assert.deepStrictEqual(
        second.messages.map(({ content }) => content),
        ["Capital of Chile?", "Santiago."]
      )
    }).pipe(Effect.scoped)
  )

  it.live("follows the reply under way", () =>
    Effect.gen(function* () {
      const pieces = yield* Queue.unbounded<string>()
      const { url } = yield* serve({ model: spoken(pieces) })
      const first = pageOf(url)
      const sent = yield* Effect.forkChild(send(first, "Speak."))
      yield* Queue.offer(pieces, "Hello, ")
      yield* until(() => first.messages.length === 2)
      const second = pageOf(url)
      const opened = yield* Effect.forkChild(Effect.promise(() => second.runAgent()))
      yield* until(() => second.messages.at(-1)?.content === "Hello, ")
      yield* Queue.offerAll(pieces, ["world", ""])
      yield* until(() => second.messages.at(-1)?.content === "Hello, world" && !second.isRunning && !first.isRunning)
      sent.interruptUnsafe()
      opened.interruptUnsafe()
    }).pipe(Effect.scoped)
  )

  it.live("is asked again what the run waits for", () =>
    Effect.gen(function* () {
      const replies = [{ calls: [{ name: "pay", input: { to: "Eva" } }] }, "Done."]
      const { url } = yield* serve({ replies, with: asks })
      yield* send(pageOf(url), "Pay Eva.")
      const second = pageOf(url)
      yield* Effect.promise(() => second.runAgent())
      assert.strictEqual(second.pendingInterrupts.length, 1)
      yield* Effect.promise(() =>
        second.runAgent({
          resume: second.pendingInterrupts.map(({ id }) => ({
            interruptId: id,
            status: "resolved",
            payload: { approved: true }
          }))
        })
      )
      assert.strictEqual(second.messages.at(-1)?.content, "Done.")
    }).pipe(Effect.scoped)
  )

  it.live("has the messages of a run that was answered meanwhile", () =>
    Effect.gen(function* () {
      const replies = [{ calls: [{ name: "pay", input: { to: "Eva" } }] }, "Done."]
      const { url } = yield* serve({ replies, with: asks })
      const first = pageOf(url)
      yield* send(first, "Pay Eva.")
      yield* Effect.promise(() =>
        first.runAgent({
          resume: first.pendingInterrupts.map(({ id }) => ({
            interruptId: id,
            status: "resolved",
            payload: { approved: true }
          }))
        })
      )
      const second = pageOf(url)
      yield* Effect.promise(() => second.runAgent())
      assert.deepStrictEqual(shown(second), shown(first))
      assert.strictEqual(second.pendingInterrupts.length, 0)
    }).pipe(Effect.scoped)
  )

  it.live("is told when the thread is new", () =>
    Effect.gen(function* () {
      const { url } = yield* serve({})
      const failed = yield* Effect.promise(() => pageOf(url).runAgent().then(String, String))
      assert.include(failed, "the thread is new")
    }).pipe(Effect.scoped)
  )
})
