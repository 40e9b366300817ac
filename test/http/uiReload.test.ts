/** The message of a run as the AI SDK builds it: from live events, and from stored ones after a page was reloaded. */
import { assert, describe, it } from "@effect/vitest"
import { readUIMessageStream, type UIMessage, uiMessageChunkSchema } from "ai"
import { Effect, Layer, Schema, Stream } from "effect"
import {
  Agent,
  Kernel,
  MediaStore,
  Policy,
  ProtocolRegistry,
  Provider,
  type RunEvent,
  RunStore,
  Skill,
  SkillRegistry,
  StreamPart
} from "kernai"
import { MockProvider } from "kernai/testing"
import { UiFold } from "../../src/http/internal/uiFold.ts"
import { final } from "../support/blocks.ts"

const pay = Skill.make("pay", {
  description: "Pays",
  input: Schema.Struct({ to: Schema.String }),
  execute: ({ to }) => Effect.succeed({ paid: to })
})

const helper = Agent.make({ name: "helper", instructions: "", model: "scripted", skills: [], dialect: "tools" })

const settings = {
  name: "clerk",
  instructions: "",
  model: "scripted",
  skills: "all" as const,
  agents: [helper],
  handoffs: [helper]
}

const clerk = Agent.make({ ...settings, dialect: "tools" })

/** The live and the stored events of one run. */
const eventsOf = (agent: Agent.Agent, model: Provider.ProviderShape, policy: Layer.Layer<never> = Layer.empty) =>
  Effect.gen(function* () {
    const live = yield* Stream.runCollect(Kernel.stream(agent, "go", { runId: "one" }))
    return {
      live: live.filter(({ runId }) => runId === "one"),
      stored: yield* Stream.runCollect(Kernel.follow("one"))
    }
  }).pipe(
    Effect.provide(
      Kernel.layer.pipe(
        Layer.provide([
          Layer.succeed(Provider.Provider, model),
          SkillRegistry.layer(pay),
          ProtocolRegistry.layer(),
          MediaStore.layerMemory,
          policy
        ]),
        Layer.provideMerge(RunStore.layerMemory)
      )
    )
  )

const scripted = (...replies: ReadonlyArray<MockProvider.Reply>) => MockProvider.make(...replies).withChunking(3)

const chunksOf = (events: ReadonlyArray<RunEvent.RunEvent>) => {
  const fold = new UiFold({ urlOf: (id) => `/media/${id}` })
  return events.flatMap((event) => fold.push(event))
}

/** The message that the client of the AI SDK builds. */
const messageOf = (events: ReadonlyArray<RunEvent.RunEvent>) =>
  Effect.promise(async (): Promise<UIMessage> => {
    const schema = uiMessageChunkSchema()
    const chunks = await Promise.all(
      chunksOf(events).map(async (chunk) => {
        const read = await schema.validate?.(chunk)
        if (read?.success !== true) throw new Error(`the client refuses ${JSON.stringify(chunk)}`)
        return read.value
      })
    )
    let last: UIMessage | undefined
    for await (const message of readUIMessageStream({ stream: ReadableStream.from(chunks) })) last = message
    return JSON.parse(JSON.stringify(last))
  })

const calling = (name: string, input: Schema.JsonObject) => ({ calls: [{ name, input }] })

const typesOf = ({ parts }: UIMessage) =>
  parts.map((part) =>
    part.type === "text" ? `text: ${part.text}` : "state" in part ? `${part.type}: ${part.state}` : part.type
  )

describe("the message of a page that was reloaded", () => {
  for (const [title, replies] of [
    ["with a call between texts", [{ text: "I pay.", calls: [{ name: "pay", input: { to: "Eva" } }] }, "Done."]],
    ["with an agent that is called", [calling("helper", { input: "Who?" }), "Eva.", "It was Eva."]],
    ["with an agent that fails", [calling("helper", {}), "It failed."]],
    ["with a call whose input does not fit", [calling("pay", { to: 5 }), "It failed."]]
  ] as const) {
    it.effect(`is the one that was shown live, ${title}`, () =>
      Effect.gen(function* () {
        const { live, stored } = yield* eventsOf(clerk, scripted(...replies))
        assert.isAbove(live.length, stored.length)
        assert.deepStrictEqual(yield* messageOf(stored), yield* messageOf(live))
      })
    )
  }

  it.effect("has the plan of a run and its tasks", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ ...settings, dialect: "blocks" })
      const plan = { goal: "pay", tasks: [{ id: "look", agent: "helper", input: "Who?" }] }
      const replies = [`<block type="plan">${JSON.stringify(plan)}</block>`, "Eva.", final("It was Eva.")]
      const { live, stored } = yield* eventsOf(agent, scripted(...replies))
      const message = yield* messageOf(stored)
      assert.deepStrictEqual(message, yield* messageOf(live))
      assert.deepStrictEqual(typesOf(message).slice(0, 3), ["step-start", "data-plan", "data-task"])
      assert.deepInclude(message.parts[2], { data: { name: "look", input: "Who?", status: "completed" } })
    })
  )
})

const payer = Agent.make({ name: "payer", instructions: "", model: "scripted", skills: [pay], dialect: "tools" })

const asks = Layer.orDie(Policy.layerRules({ confirm: [{ name: "pay" }] }))

describe("the message of a page whose tasks wait for a person", () => {
  for (const strategy of ["parallel", "sequential"] as const) {
    it.effect(`shows which of them run, as it was live (${strategy})`, () =>
      Effect.gen(function* () {
        const agent = Agent.make({ ...settings, agents: [helper, payer], dialect: "blocks" })
        const tasks = [
          { id: "look", agent: "helper", input: "Who?" },
          { id: "pay", agent: "payer", input: "Pay.", depends_on: ["look"] },
          { id: "tell", agent: "helper", input: "Tell.", depends_on: ["pay"] }
        ]
        const replies = [
          `<block type="plan">${JSON.stringify({ goal: "pay", strategy, tasks })}</block>`,
          "Eva.",
          calling("pay", { to: "Eva" })
        ]
        const { live, stored } = yield* eventsOf(agent, scripted(...replies), asks)
        const message = yield* messageOf(stored)
        assert.deepStrictEqual(message, yield* messageOf(live))
        const shown = message.parts.flatMap((part) => (part.type === "data-task" && "data" in part ? [part.data] : []))
        assert.deepStrictEqual(
          shown.map((data) => Schema.decodeUnknownSync(Schema.Struct({ status: Schema.String }))(data).status),
          ["completed", "running", "pending"]
        )
      })
    )
  }
})

describe("the message of a page", () => {
  it.effect("shows a called agent by its state and its run", () =>
    Effect.gen(function* () {
      const { live } = yield* eventsOf(clerk, scripted(calling("helper", { input: "Who?" }), "Eva.", "It was Eva."))
      const statuses = chunksOf(live).flatMap((chunk) => (chunk.type === "data-agent" ? [chunk["data"]] : []))
      assert.deepStrictEqual(
        statuses.map((data) => Schema.decodeUnknownSync(Schema.Struct({ status: Schema.String }))(data).status),
        ["pending", "running", "completed"]
      )
      const message = yield* messageOf(live)
      const part = message.parts.find(({ type }) => type === "data-agent")
      const run = live.find((event) => event.type === "task_start")
      assert.deepInclude(part, { data: { agent: "helper", runId: run?.childRunId, status: "completed" } })
    })
  )

  it.effect("shows a call whose input does not fit as an error of its input", () =>
    Effect.gen(function* () {
      const { stored } = yield* eventsOf(clerk, scripted(calling("pay", { to: 5 }), "It failed."))
      const refused = chunksOf(stored).find(({ type }) => type === "tool-input-error")
      assert.deepInclude(refused, { toolName: "pay", input: { to: 5 } })
      assert.deepStrictEqual(typesOf(yield* messageOf(stored)), [
        "step-start",
        "tool-pay: output-error",
        "step-start",
        "text: It failed."
      ])
    })
  )

  it.effect("keeps text and calls in the order of the reply", () =>
    Effect.gen(function* () {
      const reply: ReadonlyArray<StreamPart.StreamPart> = [
        { type: "text-delta", id: "0", delta: "Before." },
        { type: "tool-params-start", id: "a", name: "pay" },
        { type: "tool-params-delta", id: "a", delta: `{"to":"Eva"}` },
        { type: "tool-params-end", id: "a" },
        { type: "tool-call", id: "a", name: "pay", params: { to: "Eva" } },
        { type: "text-delta", id: "1", delta: "After." },
        { type: "finish", reason: "tool-calls", usage: StreamPart.unreported }
      ]
      const done = MockProvider.make("Done.")
      const model: Provider.ProviderShape = {
        name: "scripted",
        stream: (request) => (request.messages.length === 1 ? Stream.fromIterable(reply) : done.stream(request))
      }
      const { live, stored } = yield* eventsOf(clerk, model)
      const message = yield* messageOf(stored)
      assert.deepStrictEqual(message, yield* messageOf(live))
      assert.deepStrictEqual(typesOf(message), [
        "step-start",
        "text: Before.",
        "tool-pay: output-available",
        "text: After.",
        "step-start",
        "text: Done."
      ])
    })
  )

  it.effect("has what it has used after each turn", () =>
    Effect.gen(function* () {
      const { stored } = yield* eventsOf(clerk, scripted(calling("pay", { to: "Eva" }), "Done."))
      const parts = chunksOf(stored).filter(({ type }) => type === "message-metadata")
      assert.deepStrictEqual(
        parts.map(
          ({ messageMetadata }) => Schema.decodeUnknownSync(Schema.Struct({ turns: Schema.Int }))(messageMetadata).turns
        ),
        [1, 2]
      )
    })
  )
})
