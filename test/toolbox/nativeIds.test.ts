/** Ids that vendors give to native calls: some repeat them, some give none. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option, Schema } from "effect"
import { Agent, Call, ChatHistory, Hooks, Kernel, Policy, RunState, RunStore, Skill } from "kernai"
import { MockProvider, Replay } from "kernai/testing"
import { stub, vendor } from "../support/provider.ts"
import { kernel } from "../support/kernel.ts"
import { told } from "../support/toolbox.ts"

const agent = Agent.make({ name: "clerk", instructions: "", model: "m", skills: "all", dialect: "tools" })

/** A skill that keeps the keys it was called with. */
const ledger = () => {
  const entered: Array<readonly [string, string]> = []
  const pay = Skill.make("pay", {
    description: "Pays somebody",
    input: Schema.Struct({ to: Schema.String }),
    execute: ({ to }, { idempotencyKey }) => Effect.sync(() => (entered.push([idempotencyKey, to]), `paid ${to}`))
  })
  return { entered, pay }
}

const anthropic = (...replies: ReadonlyArray<ReadonlyArray<unknown>>) =>
  stub((_, call) => {
    const content = replies[call] ?? []
    const events: ReadonlyArray<{ readonly type: string; readonly [key: string]: unknown }> = [
      { type: "message_start", message: { usage: { input_tokens: 1, output_tokens: 1 } } },
      ...content.flatMap((block, index) => [
        { type: "content_block_start", index, content_block: block },
        { type: "content_block_stop", index }
      ]),
      { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 1 } },
      { type: "message_stop" }
    ]
    const text = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("")
    return Effect.succeed(new Response(text, { headers: { "content-type": "text/event-stream" } }))
  })

const use = (id: string, to: string) => ({ type: "tool_use", id, name: "pay", input: { to } })
const text = (text: string) => ({ type: "text", text })

/** Ids of the calls and results in a body of Anthropic, message by message. */
const idsOf = (body: unknown): ReadonlyArray<ReadonlyArray<string>> => {
  const { messages } = body as { readonly messages: ReadonlyArray<{ readonly content: ReadonlyArray<object> }> }
  return messages.map(({ content }) =>
    content.flatMap((part) =>
      "id" in part ? [`use ${part.id}`] : "tool_use_id" in part ? [`result ${part.tool_use_id}`] : []
    )
  )
}

describe("a vendor that repeats the ids of its calls", () => {
  it.effect(
    "has each call executed under its own id and key, and receives its own ids back where they are unique (R-24, DR-17)",
    () =>
      Effect.gen(function* () {
        const { entered, pay } = ledger()
        const http = anthropic(
          [use("toolu_1", "Ada"), use("toolu_2", "Bob")],
          [use("toolu_2", "Cyd"), use("toolu_1", "Dan"), use("toolu_1", "Eve")],
          [text("done")]
        )
        const provider = yield* Effect.provide(vendor("anthropic")({}), http.layer)
        yield* Effect.gen(function* () {
          const run = yield* told(agent, "go", { provider, runId: "r" })
          assert.strictEqual(run.text, "done")
          assert.deepStrictEqual(entered, [
            ["r:t1/toolu_1", "Ada"],
            ["r:t1/toolu_2", "Bob"],
            ["r:t2.0", "Cyd"],
            ["r:t2.1", "Dan"],
            ["r:t2/toolu_1#2", "Eve"]
          ])
          const state = Option.getOrThrow(yield* RunStore.RunStore.use((store) => store.load("r")))
          assert.deepStrictEqual(
            RunState.result(state, "").calls.map(({ input, callId, turn }) => [turn, callId, input]),
            [
              [1, "toolu_1", { to: "Ada" }],
              [1, "toolu_2", { to: "Bob" }],
              [2, "r:t2.0", { to: "Cyd" }],
              [2, "r:t2.1", { to: "Dan" }],
              [2, "toolu_1#2", { to: "Eve" }]
            ]
          )
          const [asked, used, results, again, others] = idsOf(http.asked[2]?.body)
          assert.deepStrictEqual(
            [asked, used, results],
            [[], ["use toolu_1", "use toolu_2"], ["result toolu_1", "result toolu_2"]]
          )
          assert.strictEqual(new Set([...(used ?? []), ...(again ?? [])]).size, 5)
          assert.deepStrictEqual(
            others,
            again?.map((id) => id.replace("use", "result"))
          )
        }).pipe(Effect.provide(kernel(pay)))
      })
  )

  const call = (to: string) => ({ calls: [{ id: "c", name: "pay", input: { to } }] })

  it.effect("sees each call under its own id, also calls that are never executed (R-24)", () =>
    Effect.gen(function* () {
      const pays = (id: string, to: string) => ({ id, name: "pay", input: { to } })
      const mock = MockProvider.make(
        { calls: [pays("send:0", "Ada"), pays("send:1", "Bob")] },
        { calls: [pays("send:0", "Cyd")] },
        { calls: [pays("send:0", "Dan")], reason: "length" },
        { calls: [pays("send:2", "Eve")], reason: "length" },
        { calls: [pays("send:2", "Fay")] },
        "done"
      )
      const { entered, pay } = ledger()
      yield* Effect.provide(
        Kernel.run(agent, "go", { provider: mock, runId: "r" }),
        Layer.merge(
          kernel(pay),
          Hooks.layer({ onToolCallsStarted: ({ calls }) => Effect.succeed({ value: calls.slice(-1) }) })
        )
      )
      const contents = (mock.messagesAt(5) ?? []).flatMap(({ content }) => content)
      const asked = contents.flatMap((part) => (part.type === "tool_use" ? part.callId : []))
      const answered = contents.flatMap((part) => (part.type === "tool_result" ? part.callId : []))
      assert.deepStrictEqual(asked, ["send:0", "send:1", "r:t2.0", "r:t3.0", "send:2", "r:t5.0"])
      assert.sameMembers(answered, asked)
      assert.deepStrictEqual(entered, [
        ["r:t1/send:1", "Bob"],
        ["r:t2.0", "Cyd"],
        ["r:t5.0", "Fay"]
      ])
    })
  )

  it.effect("sees each call under its own id, also those of an earlier run of its chat (R-24)", () =>
    Effect.gen(function* () {
      const call = (to: string): MockProvider.Reply => ({ calls: [{ id: "send:0", name: "pay", input: { to } }] })
      const mock = MockProvider.make(call("Ada"), "Ada is paid", call("Bob"), "Bob is paid")
      const { pay } = ledger()
      yield* Effect.gen(function* () {
        yield* Kernel.run(agent, "pay Ada", { provider: mock, runId: "r" })
        const chat = Option.getOrThrow(yield* RunStore.RunStore.use((store) => store.load("r")))
        yield* Kernel.run(agent, "pay Bob", { provider: mock, runId: "s", history: ChatHistory.ofState(chat) })
      }).pipe(Effect.provide(kernel(pay)))
      const contents = (mock.messagesAt(3) ?? []).flatMap(({ content }) => content)
      assert.deepStrictEqual(
        contents.flatMap((part) => (part.type === "tool_use" || part.type === "tool_result" ? part.callId : [])),
        ["send:0", "send:0", "s:t1.0", "s:t1.0"]
      )
    })
  )

  it.effect("is replayed with the result of each of its calls (R-26)", () =>
    Effect.gen(function* () {
      const { entered, pay } = ledger()
      const mock = MockProvider.make(call("Ada"), call("Bob"), { text: "done" })
      yield* Effect.gen(function* () {
        yield* Kernel.run(agent, "go", { provider: mock, runId: "r" })
        const { events } = yield* Replay.run(agent, "r")
        assert.deepStrictEqual(
          events.flatMap((event) => (event.type === "tool_call_completed" ? [Call.textOf(event.result)] : [])),
          ["paid Ada", "paid Bob"]
        )
        assert.lengthOf(entered, 2)
      }).pipe(Effect.provide(kernel(pay)))
    })
  )

  it.effect.each(["c", "0", "send:0", "call_0", ""])(
    "asks a person about each call: a late or repeated answer to one does not answer the next (%j, R-25)",
    (id) =>
      Effect.gen(function* () {
        const { entered, pay } = ledger()
        const call = (to: string) => ({ calls: [{ id, name: "pay", input: { to } }] })
        const mock = MockProvider.make(call("Ada"), call("Bob"), call("Cyd"), { text: "done" })
        const approvals = Effect.map(Kernel.questions("r"), (questions) =>
          questions.map(({ callId }) => ({ callId, approved: true }))
        )
        yield* Effect.gen(function* () {
          yield* Effect.flip(Kernel.run(agent, "go", { provider: mock, runId: "r" }))
          const early = yield* approvals
          yield* Effect.flip(Kernel.resume(agent, "r", { provider: mock, answers: early }))
          const again = yield* Effect.flip(Kernel.resume(agent, "r", { provider: mock, answers: early }))
          assert.strictEqual(again._tag, "QuestionNotFound")
          yield* Effect.flip(Kernel.resume(agent, "r", { provider: mock, answers: yield* approvals }))
          const late = yield* Effect.flip(Kernel.resume(agent, "r", { provider: mock, answers: early }))
          assert.strictEqual(late._tag, "QuestionNotFound")
          const { text } = yield* Kernel.resume(agent, "r", { provider: mock, answers: yield* approvals })
          assert.strictEqual(text, "done")
          assert.deepStrictEqual(
            entered.map(([, to]) => to),
            ["Ada", "Bob", "Cyd"]
          )
        }).pipe(
          Effect.provide(
            Layer.merge(
              kernel(pay),
              Policy.layer(() => Effect.succeed(Policy.confirm("sure?")))
            )
          )
        )
      })
  )
})

describe("a vendor that gives no ids", () => {
  const part = (to: string) => ({ functionCall: { name: "pay", args: { to } }, thoughtSignature: `by ${to}` })
  const reply = (...parts: ReadonlyArray<unknown>) => ({
    candidates: [{ content: { parts }, finishReason: "STOP" }]
  })

  interface Shown {
    readonly contents: ReadonlyArray<{
      readonly parts: ReadonlyArray<{
        readonly functionCall?: { readonly id: string; readonly args: { readonly to: string } }
        readonly functionResponse?: { readonly id: string }
        readonly thoughtSignature?: string
      }>
    }>
  }

  /** Gemini with these replies, and the parts it was shown by its last request. */
  const gemini = Effect.fnUntraced(function* (...replies: ReadonlyArray<unknown>) {
    const headers = { "content-type": "text/event-stream" }
    const http = stub((_, call) =>
      Effect.sync(() => new Response(`data: ${JSON.stringify(replies[call])}\n\n`, { headers }))
    )
    const provider = yield* Effect.provide(vendor("google")({}), http.layer)
    const shown = () => {
      const body = http.asked.at(-1)?.body as Shown | undefined
      return (body?.contents ?? []).flatMap(({ parts }) => parts)
    }
    return { provider, shown }
  })

  it.effect("receives the signature of each call back with that call", () =>
    Effect.gen(function* () {
      const { provider, shown } = yield* gemini(
        reply(part("Ada"), part("Bob")),
        reply(part("Cyd")),
        reply({ text: "done" })
      )
      const run = yield* Effect.provide(told(agent, "go", { provider }), kernel(ledger().pay))
      assert.strictEqual(run.text, "done")
      assert.deepStrictEqual(
        shown().flatMap(({ functionCall, thoughtSignature }) =>
          functionCall === undefined ? [] : [functionCall.args.to, thoughtSignature]
        ),
        ["Ada", "by Ada", "Bob", "by Bob", "Cyd", "by Cyd"]
      )
    })
  )

  it.effect("receives the calls of a fork, their signatures and results under the same ids", () =>
    Effect.gen(function* () {
      const done = reply({ text: "done" })
      const { provider, shown } = yield* gemini(reply(part("Ada")), done, done)
      yield* Effect.gen(function* () {
        yield* Kernel.run(agent, "go", { provider, runId: "r" })
        const state = Option.getOrThrow(yield* RunStore.RunStore.use((store) => store.load("r")))
        yield* Kernel.fork("r", { runId: "f", revision: state.revision - 4 })
        yield* Kernel.resume(agent, "f", { provider })
        const call = shown().find(({ functionCall }) => functionCall !== undefined)
        const result = shown().find(({ functionResponse }) => functionResponse !== undefined)
        assert.strictEqual(call?.thoughtSignature, "by Ada")
        assert.isString(call?.functionCall?.id)
        assert.strictEqual(result?.functionResponse?.id, call?.functionCall?.id)
        assert.lengthOf(
          shown().filter(({ functionResponse }) => functionResponse !== undefined),
          1
        )
      }).pipe(Effect.provide(kernel(ledger().pay)))
    })
  )
})
