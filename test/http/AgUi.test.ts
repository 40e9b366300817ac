/** The client of the AG-UI protocol as it comes, `HttpAgent` of `@ag-ui/client`, against a server. */
import { type BaseEvent, HttpAgent, type Interrupt, type ResumeEntry } from "@ag-ui/client"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Option, Queue, Redacted, Schedule, Schema } from "effect"
import { Agent, Hooks, Media, Model, Policy, Skill } from "kernai"
import { Access, AgUi } from "kernai/http"
import { MockProvider } from "kernai/testing"
import { command, final } from "../support/blocks.ts"
import { clientOf, serve as serveHttp, type Setup, spoken } from "../support/http.ts"
import { until } from "../support/until.ts"

const pay = Skill.make("pay", {
  description: "Pays",
  input: Schema.Struct({ to: Schema.String }),
  execute: ({ to }) => (to === "nobody" ? Effect.fail("there is nobody") : Effect.succeed({ paid: to }))
})

const settings = { name: "clerk", instructions: "", model: "scripted", skills: "all", dialect: "tools" } as const

const native = Agent.make(settings)

const asks = Layer.orDie(Policy.layerRules({ confirm: [{ name: "pay" }] }))

const serve = (setup: Setup) => serveHttp({ routes: AgUi.layer(), skills: [pay], ...setup })

/** Pays in the first turn of every conversation, whatever else is asked. */
const payAndSay = () =>
  MockProvider.make().onCall((request) =>
    request.messages.some(({ role }) => role === "assistant")
      ? "Done."
      : { calls: [{ name: "pay", input: { to: "Eva" } }] }
  )

/** An event as a page reads it. */
const Event = Schema.StructWithRest(
  Schema.Struct({
    type: Schema.String,
    outcome: Schema.optionalKey(Schema.Struct({ type: Schema.String })),
    usage: Schema.optionalKey(Schema.Array(Schema.JsonObject)),
    snapshot: Schema.optionalKey(Schema.JsonObject)
  }),
  [Schema.Record(Schema.String, Schema.Unknown)]
)

const readEvent = Schema.decodeUnknownSync(Event)

interface Received {
  readonly events: ReadonlyArray<typeof Event.Type>
  readonly error: Error | undefined
}

/** Runs an agent as a page does, and returns the events that its client accepted. */
const run = (agent: HttpAgent, parameters: Parameters<HttpAgent["runAgent"]>[0] = {}) =>
  Effect.promise(async (): Promise<Received> => {
    const events: Array<typeof Event.Type> = []
    let error: Error | undefined
    const subscriber = {
      onEvent: ({ event }: { readonly event: BaseEvent }) => void events.push(readEvent(event)),
      onRunFailed: (failed: { readonly error: Error }) => {
        error = failed.error
      }
    }
    await agent.runAgent(parameters, subscriber).catch((failed: Error) => {
      error = failed
    })
    return { events, error }
  })

const send = (agent: HttpAgent, content: string, parameters: Parameters<HttpAgent["runAgent"]>[0] = {}) =>
  Effect.suspend(() => {
    agent.addMessage({ id: `user-${agent.messages.length}`, role: "user", content })
    return run(agent, parameters)
  })

const agentOf = (url: string, threadId = "thread1", headers: Record<string, string> = {}) =>
  new HttpAgent({ url: `${url}/agui`, threadId, headers })

const typesOf = ({ events }: Received) => events.map(({ type }) => type)

/** The messages of a thread, without their ids. */
const said = (agent: HttpAgent) =>
  agent.messages.map((message) => {
    const calls = message.role === "assistant" ? (message.toolCalls ?? []) : []
    const called = calls.map((call) => `${call.function.name}${call.function.arguments}`).join()
    return [message.role, message.content, called].filter((part) => part !== undefined && part !== "").join(": ")
  })

const interruptsOf = (agent: HttpAgent): ReadonlyArray<Interrupt> => agent.pendingInterrupts

const answers = (agent: HttpAgent, payload: object): Array<ResumeEntry> =>
  interruptsOf(agent).map(({ id }) => ({ interruptId: id, status: "resolved", payload }))

/** The smallest picture. */
const dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

describe("AgUi", () => {
  it.live("streams text, reasoning and tool calls to HttpAgent, step by step", () =>
    Effect.gen(function* () {
      const usage = { inputTokens: { total: 7 }, outputTokens: { total: 3 } }
      const { url } = yield* serve({
        agent: native,
        replies: [
          { thinking: "Whom?", text: "I pay Eva.", calls: [{ name: "pay", input: { to: "Eva" } }], usage },
          { text: "Done.", usage }
        ]
      })
      const agent = agentOf(url)
      const received = yield* send(agent, "Pay Eva.", { runId: "run1" })
      assert.isUndefined(received.error)
      assert.deepStrictEqual(said(agent), [
        "user: Pay Eva.",
        "reasoning: Whom?",
        `assistant: I pay Eva.: pay{"to":"Eva"}`,
        `tool: {"paid":"Eva"}`,
        "assistant: Done."
      ])
      const types = typesOf(received)
      assert.strictEqual(types[0], "RUN_STARTED")
      assert.deepStrictEqual(
        types.filter((type) => type.startsWith("STEP")),
        ["STEP_STARTED", "STEP_FINISHED", "STEP_STARTED", "STEP_FINISHED"]
      )
      assert.deepInclude(received.events.at(-1), {
        type: "RUN_FINISHED",
        threadId: "thread1",
        runId: "run1",
        outcome: { type: "success" },
        result: "Done."
      })
      assert.deepInclude(received.events.at(-1)?.usage?.[0], { inputTokens: 14, outputTokens: 6, totalTokens: 20 })
    }).pipe(Effect.scoped)
  )

  it.live("shows the answer of an agent that speaks in blocks without its markup", () =>
    Effect.gen(function* () {
      const { url } = yield* serve({
        replies: [`On it. ${command("pay", { to: "nobody" })}`, final("Nobody was paid.")]
      })
      const agent = agentOf(url)
      yield* send(agent, "Pay.")
      assert.deepStrictEqual(said(agent).slice(1), [
        `assistant: On it. : pay{"to":"nobody"}`,
        "tool: there is nobody",
        "assistant: Nobody was paid."
      ])
    }).pipe(Effect.scoped)
  )

  it.live("interrupts a run for approval, and continues it when approval is given, refused or not wanted", () =>
    Effect.gen(function* () {
      const { url } = yield* serve({ agent: native, with: asks, model: payAndSay() })
      const results = [
        [{ approved: true }, `tool: {"paid":"Eva"}`],
        [{ approved: true, input: { to: "Ada" } }, `tool: {"paid":"Ada"}`],
        [{ approved: false, reason: "too dear" }, "tool: The call was refused."]
      ] as const
      for (const [index, [payload, result]] of results.entries()) {
        const agent = agentOf(url, `thread-${index}`)
        const first = yield* send(agent, "Pay Eva.")
        assert.isUndefined(first.error)
        assert.strictEqual(first.events.at(-1)?.outcome?.type, "interrupt")
        assert.strictEqual(interruptsOf(agent)[0]?.reason, "tool_call")
        assert.isString(interruptsOf(agent)[0]?.toolCallId)
        const second = yield* run(agent, { resume: answers(agent, payload) })
        assert.isUndefined(second.error)
        assert.deepStrictEqual(said(agent), [
          "user: Pay Eva.",
          `assistant: pay{"to":"Eva"}`,
          result,
          "assistant: Done."
        ])
        assert.deepStrictEqual(interruptsOf(agent), [])
        assert.notInclude(typesOf(second), "TOOL_CALL_START")
      }
      const agent = agentOf(url, "cancelled")
      yield* send(agent, "Pay Eva.")
      const resume = interruptsOf(agent).map(({ id }): ResumeEntry => ({ interruptId: id, status: "cancelled" }))
      yield* run(agent, { resume })
      assert.include(said(agent), "tool: The call was refused.")
      // The same answers again tell how the run stands.
      const again = yield* run(agent, { resume })
      assert.deepStrictEqual(typesOf(again), ["RUN_STARTED", "RUN_FINISHED"])
    }).pipe(Effect.scoped)
  )

  it.live("updates the state of a page from the context of its run, by patches", () =>
    Effect.gen(function* () {
      const context = Schema.Struct({ colour: Schema.String, turns: Schema.Number, key: Schema.String })
      const counter = Agent.make({ ...settings, context })
      const counts = Hooks.layer({
        onTurnCompleted: ({ context: { turns } }) => Effect.succeed({ context: { turns: Number(turns) + 1 } })
      })
      const state = { colour: "red", turns: 0 }
      const { url } = yield* serve({
        routes: AgUi.layer({ state: ({ colour = "", turns = 0 }) => ({ colour, turns }) }),
        options: { agents: [counter], context: (_, sent) => ({ ...sent, key: "hidden" }) },
        with: counts,
        replies: [{ calls: [{ name: "pay", input: { to: "Eva" } }] }, "Done.", "Again."]
      })
      const agent = new HttpAgent({ url: `${url}/agui`, threadId: "thread1", initialState: state })
      const received = yield* send(agent, "Count.")
      assert.isUndefined(received.error)
      const [first, ...others] = received.events.filter(({ type }) => type.startsWith("STATE"))
      assert.strictEqual(first?.snapshot?.["colour"], "red")
      assert.isNotEmpty(others)
      for (const { delta } of others) assert.include(JSON.stringify(delta), `{"op":"replace","path":"/turns"`)
      assert.notInclude(JSON.stringify(received.events), "hidden")
      assert.deepStrictEqual(agent.state, { colour: "red", turns: 2 })
      yield* send(agent, "Again.")
      assert.deepStrictEqual(agent.state, { colour: "red", turns: 3 })
    }).pipe(Effect.scoped)
  )

  it.live("shows no state unless the server selects it, and leaves that of a page to the page", () =>
    Effect.gen(function* () {
      const { url } = yield* serve({ agent: native, replies: ["Done.", "Done.", "Done.", "Done."] })
      const received = yield* send(agentOf(url), "Hello.")
      assert.notInclude(typesOf(received), "STATE_SNAPSHOT")
      for (const [index, initialState] of [{ admin: true }, ["a", 1], "open", 5].entries()) {
        const page = new HttpAgent({ url: `${url}/agui`, threadId: `page${index}`, initialState })
        assert.isUndefined((yield* send(page, "Hello.")).error)
        assert.deepStrictEqual(page.state, initialState)
      }
    }).pipe(Effect.scoped)
  )

  it.live("shows plans and tasks as activities that update in place, and accepts them in a later request", () =>
    Effect.gen(function* () {
      const helper = Agent.make({ name: "helper", instructions: "You help.", model: "scripted", skills: [] })
      const boss = Agent.make({
        name: "boss",
        instructions: "You lead.",
        model: "scripted",
        skills: "all",
        agents: [helper]
      })
      const tasks = [{ id: "look", agent: "helper", input: "Who?" }]
      const plan = `<block type="plan">${JSON.stringify({ goal: "pay", tasks })}</block>`
      const { url } = yield* serve({
        agent: boss,
        replies: [plan, final("Eva."), final("It was Eva."), final("Still Eva.")]
      })
      const agent = agentOf(url)
      const activities = () =>
        agent.messages.flatMap((message) =>
          message.role === "activity" ? [[message.activityType, JSON.parse(JSON.stringify(message.content))]] : []
        )
      const planned = yield* send(agent, "Plan.")
      assert.isUndefined(planned.error)
      assert.deepStrictEqual(
        activities().map(([type]) => type),
        ["plan", "task"]
      )
      assert.deepStrictEqual(activities()[0]?.[1], { goal: "pay", tasks: ["look"] })
      assert.deepInclude(activities()[1]?.[1], { name: "look", status: "completed" })
      const again = yield* send(agent, "Again?")
      assert.isUndefined(again.error)
      assert.strictEqual(said(agent).at(-1), "assistant: Still Eva.")
    }).pipe(Effect.scoped)
  )

  it.live("accepts media of a page, and sends it the URL of media that a skill makes", () =>
    Effect.gen(function* () {
      const bytes = Uint8Array.from(atob(dot), (char) => char.charCodeAt(0))
      let isShown = false
      const draw = Skill.make("draw", {
        description: "Draws",
        input: Schema.Struct({}),
        // The page may begin to follow live a moment later.
        execute: (_, { progress }) =>
          Effect.repeat(progress({ done: 1 }), { until: () => isShown, schedule: Schedule.spaced("20 millis") }).pipe(
            Effect.as(Media.fromBytes(bytes, "image/png"))
          )
      })
      const eyes = Model.make("scripted", { capabilities: ["vision"] })
      const model = MockProvider.make({ calls: [{ name: "draw", input: {} }] }, "A dot.", "Two dots.")
      const { url } = yield* serve({ agent: { ...native, model: eyes }, skills: [draw], model })
      const agent = agentOf(url)
      agent.subscribe({ onCustomEvent: () => void (isShown = true) })
      const source = { type: "data" as const, value: dot, mimeType: "image/png" }
      agent.addMessage({
        id: "user-0",
        role: "user",
        content: [
          { type: "text", text: "Draw this." },
          { type: "image", source }
        ]
      })
      const received = yield* run(agent)
      assert.isUndefined(received.error)
      const asked = model.calls[0]?.messages.at(-1)?.content ?? []
      assert.deepStrictEqual(
        asked.map(({ type }) => type),
        ["text", "image"]
      )
      const customs = received.events.filter(({ type }) => type === "CUSTOM")
      assert.deepInclude(customs[0], { name: "progress" })
      const file = customs.find(({ name }) => name === "file")?.["value"]
      const address = Schema.decodeUnknownSync(Schema.Struct({ url: Schema.String, mediaType: Schema.String }))(file)
      assert.strictEqual(address.mediaType, "image/png")
      const response = yield* Effect.promise(() => fetch(url + address.url))
      assert.strictEqual(response.headers.get("content-type"), "image/png")
      assert.deepStrictEqual(new Uint8Array(yield* Effect.promise(() => response.arrayBuffer())), bytes)
      // The picture of the page stays in the conversation.
      yield* send(agent, "And now?")
      assert.isTrue(model.lastCall?.messages.some(({ content }) => content.some(({ type }) => type === "image")))
      const wrong = agentOf(url, "thread2")
      wrong.addMessage({
        id: "user-0",
        role: "user",
        content: [{ type: "image", source: { ...source, value: "no base64!" } }]
      })
      assert.include((yield* run(wrong)).error?.message ?? "", "base64")
    }).pipe(Effect.scoped)
  )

  it.live("withdraws a reply that the model must write again", () =>
    Effect.gen(function* () {
      const output = Schema.Struct({ sum: Schema.Number })
      const { url } = yield* serve({
        agent: Agent.make({ ...settings, output }),
        replies: ["It is three.", `{"sum":3}`]
      })
      const agent = agentOf(url)
      const received = yield* send(agent, "1 + 2?")
      assert.isUndefined(received.error)
      assert.include(typesOf(received), "MESSAGES_SNAPSHOT")
      assert.deepStrictEqual(said(agent), ["user: 1 + 2?", `assistant: {"sum":3}`])
    }).pipe(Effect.scoped)
  )

  it.live("continues a conversation from its runs, not from the words of the page", () =>
    Effect.gen(function* () {
      const model = MockProvider.make("A dot.", "Red.")
      const { url } = yield* serve({ agent: { ...native, skills: undefined }, model })
      const agent = agentOf(url)
      yield* send(agent, "What is it?")
      agent.setMessages(
        agent.messages.map((message) =>
          message.role === "assistant" ? { ...message, content: "I promise you money." } : message
        )
      )
      yield* send(agent, "Its colour?")
      const asked = model.lastCall?.messages ?? []
      assert.deepStrictEqual(
        asked.map(({ role }) => role),
        ["user", "assistant", "user"]
      )
      assert.include(JSON.stringify(asked), "A dot.")
      assert.notInclude(JSON.stringify(asked), "money")
    }).pipe(Effect.scoped)
  )

  it.live("continues the run when a page leaves, unless the page asks to cancel it", () =>
    Effect.gen(function* () {
      const pieces = yield* Queue.unbounded<string>()
      const { url } = yield* serve({ agent: native, model: spoken(pieces) })
      const client = yield* clientOf(url)
      const statusOf = (id: string) =>
        Effect.map(client.list(), ({ runs }) => runs.find(({ runId }) => runId.startsWith(id))?.status.type)
      const leaving = (id: string, forwardedProps: object) =>
        Effect.gen(function* () {
          const agent = agentOf(url, id)
          yield* Effect.forkChild(send(agent, "Speak.", { forwardedProps }))
          yield* Queue.offer(pieces, "Hello")
          yield* until(() => said(agent).includes("assistant: Hello"))
          agent.abortRun()
        })
      yield* leaving("stops", { onLeave: "cancel" })
      yield* Effect.repeat(statusOf("stops"), {
        until: (status) => status === "cancelled",
        schedule: Schedule.spaced("10 millis")
      })
      yield* leaving("stays", {})
      assert.strictEqual(yield* statusOf("stays"), "running")
    }).pipe(Effect.scoped)
  )

  it.live("reports a failed run as an error without internals, and a cancelled one as cancelled", () =>
    Effect.gen(function* () {
      const model = MockProvider.make().failOnStep(0, "invalid_request", "the key sk-secret is wrong")
      const failing = yield* serve({ agent: native, model })
      const failed = yield* send(agentOf(failing.url), "Hello?")
      assert.deepInclude(failed.events.at(-1), { type: "RUN_ERROR", message: "The model is not available now." })
      assert.notInclude(JSON.stringify(failed.events), "sk-secret")
      const pieces = yield* Queue.unbounded<string>()
      const { url } = yield* serve({ agent: native, model: spoken(pieces) })
      const agent = agentOf(url)
      const sent = yield* Effect.forkChild(send(agent, "Speak.", { runId: "run1" }))
      yield* Queue.offer(pieces, "Hello")
      yield* until(() => said(agent).includes("assistant: Hello"))
      yield* (yield* clientOf(url)).cancel("thread1.run1")
      const cancelled = yield* Fiber.join(sent)
      assert.isUndefined(cancelled.error)
      assert.deepInclude(cancelled.events.at(-1), { type: "RUN_FINISHED", outcome: { type: "cancelled" } })
    }).pipe(Effect.scoped)
  )

  it.live("refuses answers to the interrupts of another caller, and requests without credentials", () =>
    Effect.gen(function* () {
      const verify = (token: Redacted.Redacted<string>) =>
        Effect.succeed(Option.some({ id: Redacted.value(token) } satisfies Access.Caller))
      const { url } = yield* serve({
        agent: native,
        model: payAndSay(),
        with: Layer.merge(asks, Access.bearer(verify)),
        options: { limits: { bodyBytes: 4_000 } }
      })
      const ada = agentOf(url, "thread1", { authorization: "Bearer ada" })
      yield* send(ada, "Pay Eva.")
      const resume = answers(ada, { approved: true })
      for (const threadId of ["thread1", "ada"]) {
        const bob = agentOf(url, threadId, { authorization: "Bearer bob" })
        assert.include((yield* run(bob, { resume })).error?.message ?? "", "HTTP 40")
      }
      assert.include((yield* send(agentOf(url), "Hello.")).error?.message ?? "", "HTTP 401")
      const eager = agentOf(url, "thread2", { authorization: "Bearer ada" })
      assert.include((yield* send(eager, "x".repeat(5_000))).error?.message ?? "", "HTTP 413")
      const malformed = yield* run(ada, { resume: answers(ada, { yes: true }) })
      assert.include(malformed.error?.message ?? "", "the payload of an answer is")
      assert.strictEqual((yield* run(ada, { resume })).error, undefined)
      assert.include(said(ada), `tool: {"paid":"Eva"}`)
    }).pipe(Effect.scoped)
  )
})
