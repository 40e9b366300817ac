/** Called agents and signed reasoning, as the client of the AG-UI protocol reads them. */
import { type BaseEvent, HttpAgent, type ResumeEntry } from "@ag-ui/client"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema, Stream } from "effect"
import { Agent, Policy, type Provider, Skill, StreamPart } from "kernai"
import { AgUi } from "kernai/http"
import { serve as serveHttp, type Setup } from "../support/http.ts"

const pay = Skill.make("pay", {
  description: "Pays",
  input: Schema.Struct({ to: Schema.String }),
  execute: ({ to }) => Effect.succeed({ paid: to })
})

const base = { instructions: "", model: "scripted", dialect: "tools" } as const

const helper = Agent.make({ ...base, name: "helper", skills: [pay] })

const boss = Agent.make({ ...base, name: "boss", skills: [], agents: [helper] })

const asks = Layer.orDie(Policy.layerRules({ confirm: [{ name: "pay" }] }))

const serve = (setup: Setup) => serveHttp({ agent: boss, routes: AgUi.layer(), skills: [pay], ...setup })

const Event = Schema.StructWithRest(Schema.Struct({ type: Schema.String }), [
  Schema.Record(Schema.String, Schema.Unknown)
])

const readEvent = Schema.decodeUnknownSync(Event)

/** Runs an agent as a page does. The client checks the order of the events. */
const run = (agent: HttpAgent, parameters: Parameters<HttpAgent["runAgent"]>[0] = {}) =>
  Effect.promise(async () => {
    const events: Array<typeof Event.Type> = []
    await agent.runAgent(parameters, {
      onEvent: ({ event }: { readonly event: BaseEvent }) => void events.push(readEvent(event))
    })
    return events
  })

const send = (agent: HttpAgent, content: string) =>
  Effect.suspend(() => {
    agent.addMessage({ id: `user-${agent.messages.length}`, role: "user", content })
    return run(agent)
  })

const agentOf = (url: string) => new HttpAgent({ url: `${url}/agui`, threadId: "thread1" })

const calling = (name: string, input: Schema.JsonObject) => ({ calls: [{ name, input }] })

const subagentsIn = (events: ReadonlyArray<typeof Event.Type>) =>
  events.filter(({ type }) => type.startsWith("SUBAGENT"))

describe("an agent that an agent calls, over AG-UI", () => {
  it.live("is a subagent of the call, from its start to its end", () =>
    Effect.gen(function* () {
      const replies = [calling("helper", { input: "Who?" }), "Eva.", "It was Eva."]
      const { url } = yield* serve({ replies })
      const events = yield* send(agentOf(url), "Ask.")
      const [started, finished, ...more] = subagentsIn(events)
      const called = events.find(({ type }) => type === "TOOL_CALL_START")
      assert.deepInclude(started, {
        type: "SUBAGENT_STARTED",
        name: "helper",
        parentToolCallId: called?.["toolCallId"]
      })
      const subagentRunId = started?.["subagentRunId"]
      assert.deepInclude(finished, { type: "SUBAGENT_FINISHED", subagentRunId, outcome: { type: "success" } })
      assert.deepStrictEqual(more, [])
    }).pipe(Effect.scoped)
  )

  it.live("has its text, its reasoning and its calls attributed to it, before it has finished", () =>
    Effect.gen(function* () {
      const replies = [
        calling("helper", { input: "Pay." }),
        { thinking: "Whom?", text: "I pay.", calls: [{ name: "pay", input: { to: "Eva" } }] },
        "Paid.",
        "It is paid.",
        "Sure."
      ]
      const { url } = yield* serve({ replies })
      const page = agentOf(url)
      const events = yield* send(page, "Ask.")
      const [started, finished] = subagentsIn(events)
      const subagentRunId = started?.["subagentRunId"]
      const own = events.filter((event) => event["subagentRunId"] === subagentRunId)
      assert.deepStrictEqual([own[0], own.at(-1)], [started, finished])
      assert.includeMembers(
        own.map(({ type }) => type),
        ["STEP_STARTED", "REASONING_MESSAGE_CONTENT", "TEXT_MESSAGE_CONTENT", "TOOL_CALL_START", "TOOL_CALL_RESULT"]
      )
      const said = page.messages.filter(({ role }) => role === "assistant" || role === "tool" || role === "reasoning")
      assert.deepStrictEqual(
        said.map((message) => ["subagentRunId" in message, message.role, message.content ?? ""]),
        [
          // The client puts a result behind its call.
          [false, "assistant", ""],
          [false, "tool", "Paid."],
          [true, "reasoning", "Whom?"],
          [true, "assistant", "I pay."],
          [true, "tool", '{"paid":"Eva"}'],
          [true, "assistant", "Paid."],
          [false, "assistant", "It is paid."]
        ]
      )
      const second = agentOf(url)
      yield* run(second)
      assert.deepStrictEqual(second.messages.slice(1), page.messages.slice(1))
      yield* send(page, "Sure?")
      const third = agentOf(url)
      yield* run(third)
      const shown = ({ messages }: HttpAgent) => messages.filter(({ role }) => role !== "user")
      assert.deepStrictEqual(shown(third), shown(page))
    }).pipe(Effect.scoped)
  )

  it.live("reports its failure, and the run continues", () =>
    Effect.gen(function* () {
      const { url } = yield* serve({ replies: [calling("helper", {}), "It failed."] })
      const events = yield* send(agentOf(url), "Ask.")
      assert.deepStrictEqual(
        subagentsIn(events).map(({ type }) => type),
        ["SUBAGENT_STARTED", "SUBAGENT_ERROR"]
      )
      assert.strictEqual(events.at(-1)?.type, "RUN_FINISHED")
    }).pipe(Effect.scoped)
  )

  it.live("is suspended while it waits for a person, and is announced again when it continues", () =>
    Effect.gen(function* () {
      const replies = [calling("helper", { input: "Pay." }), calling("pay", { to: "Eva" }), "Paid.", "It is paid."]
      const { url } = yield* serve({ replies, with: asks })
      const agent = agentOf(url)
      const asked = subagentsIn(yield* send(agent, "Ask."))
      assert.deepStrictEqual(
        asked.flatMap(({ outcome, type }) => [type, outcome]),
        ["SUBAGENT_STARTED", undefined, "SUBAGENT_FINISHED", { type: "suspended" }]
      )
      assert.deepStrictEqual(
        agent.pendingInterrupts.map(({ subagentRunId }) => subagentRunId),
        [asked[0]?.["subagentRunId"]]
      )
      const resume = agent.pendingInterrupts.map(({ id }): ResumeEntry => ({
        interruptId: id,
        status: "resolved",
        payload: { approved: true }
      }))
      assert.strictEqual(resume.length, 1)
      const answered = yield* run(agent, { resume })
      assert.deepStrictEqual(
        subagentsIn(answered).map(({ type }) => type),
        ["SUBAGENT_STARTED", "SUBAGENT_FINISHED"]
      )
      assert.deepInclude(answered.at(-1), { type: "RUN_FINISHED", result: "It is paid." })
      const texts = agent.messages.filter(({ role }) => role === "assistant" || role === "tool")
      assert.deepStrictEqual(
        texts.map(({ content, ...message }) => ["subagentRunId" in message, content ?? ""]),
        [
          [false, ""],
          [false, "Paid."],
          [true, ""],
          [true, '{"paid":"Eva"}'],
          [true, "Paid."],
          [false, "It is paid."]
        ]
      )
    }).pipe(Effect.scoped)
  )
})

describe("the reasoning of a reply, over AG-UI", () => {
  it.live("keeps the signature of the vendor with its message", () =>
    Effect.gen(function* () {
      const reply: ReadonlyArray<StreamPart.StreamPart> = [
        { type: "reasoning-start", id: "r" },
        { type: "reasoning-delta", id: "r", delta: "Whom?" },
        { type: "reasoning-end", id: "r", metadata: { scripted: { signature: "sealed" } } },
        { type: "text-delta", id: "0", delta: "Eva." },
        { type: "finish", reason: "stop", usage: StreamPart.unreported }
      ]
      const model: Provider.ProviderShape = { name: "scripted", stream: () => Stream.fromIterable(reply) }
      const { url } = yield* serve({ model })
      const agent = agentOf(url)
      yield* send(agent, "Who?")
      const reasoning = agent.messages.find(({ role }) => role === "reasoning")
      assert.deepInclude(reasoning, { content: "Whom?", encryptedValue: JSON.stringify({ signature: "sealed" }) })
      // A page that sends it back is understood.
      yield* send(agent, "And now?")
      assert.strictEqual(agent.messages.at(-1)?.role, "assistant")
    }).pipe(Effect.scoped)
  )
})
