/**
 * A conversation that changes vendors and comes back, over the adapters and the wires of both.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Agent, Kernel, ModelRegistry, Skill } from "kernai"
import { kernel } from "../support/kernel.ts"
import { serverSent, stub, vendor } from "../support/provider.ts"

const start = {
  type: "message_start",
  message: { id: "m1", model: "claude-x", usage: { input_tokens: 3, output_tokens: 1 } }
}
const stop = (stop_reason: string) => [
  { type: "message_delta", delta: { stop_reason }, usage: { output_tokens: 5 } },
  { type: "message_stop" }
]
const block = (index: number, content_block: object, ...deltas: ReadonlyArray<object>) => [
  { type: "content_block_start", index, content_block },
  ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
  { type: "content_block_stop", index }
]

/** What Claude says: it thinks and hands over; then, when it is back, it answers. */
const claude = [
  [
    start,
    ...block(
      0,
      { type: "thinking", thinking: "" },
      { type: "thinking_delta", thinking: "An invoice." },
      { type: "signature_delta", signature: "sig" }
    ),
    ...block(1, { type: "text", text: "" }, { type: "text_delta", text: "One moment." }),
    ...block(
      2,
      { type: "tool_use", id: "toolu_1", name: "transfer_to_billing", input: {} },
      { type: "input_json_delta", partial_json: `{"reason": "invoice"}` }
    ),
    ...stop("tool_use")
  ],
  [start, ...block(0, { type: "text", text: "" }, { type: "text_delta", text: "You owe 7." }), ...stop("end_turn")]
]

const gptCall = (id: string, name: string, args: string) => [
  { choices: [{ index: 0, delta: { tool_calls: [{ index: 0, id, function: { name, arguments: args } }] } }] },
  { choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }] },
  "[DONE]"
]

/** What GPT says: it looks the invoice up, and hands back. */
const gpt = [gptCall("call_a", "invoice", `{"month": 7}`), gptCall("call_b", "transfer_to_desk", "{}")]

const gptText = (text: string) => [
  { choices: [{ index: 0, delta: { content: text } }] },
  { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] },
  "[DONE]"
]

/** The same in blocks. */
const gptBlocks = [
  gptText(`<block type="command" name="invoice">{"month": 7}</block>`),
  gptText(`<block type="command" name="transfer_to_desk"></block>`)
]

const invoice = Skill.make("invoice", {
  description: "Reads an invoice",
  input: Schema.Struct({ month: Schema.Int }),
  effects: "read",
  execute: ({ month }) => Effect.succeed(`${month} euros`)
})

const conversation = (dialect: Agent.DialectName) => {
  const anthropic = stub((_, call) => Effect.succeed(serverSent(claude[call] ?? [])))
  const openai = stub((_, call) => Effect.succeed(serverSent((dialect === "tools" ? gpt : gptBlocks)[call] ?? [])))
  const billing = Agent.make({
    name: "billing",
    instructions: "You read invoices.",
    model: "openai/gpt-x",
    dialect,
    skills: [invoice],
    handoffs: ["desk"]
  })
  const desk = Agent.make({
    name: "desk",
    instructions: "You help.",
    model: "anthropic/claude-x",
    dialect: "tools",
    handoffs: [billing]
  })
  return Effect.gen(function* () {
    const adapters = {
      anthropic: yield* Effect.provide(vendor("anthropic")({}), anthropic.layer),
      openai: yield* Effect.provide(vendor("openai")({}), openai.layer)
    }
    const result = yield* Kernel.run(desk, "What do I owe?").pipe(Effect.provide(ModelRegistry.layer(adapters)))
    return { result, anthropic: anthropic.asked, openai: openai.asked }
  }).pipe(Effect.provide(kernel()))
}

describe("a conversation handed from Claude to GPT and back", () => {
  it.effect("is sent to each in its own form, without the thinking of the other", () =>
    Effect.gen(function* () {
      const { anthropic, openai, result } = yield* conversation("tools")
      assert.deepInclude(result, { agent: "desk", text: "You owe 7.", turns: 4 })
      assert.deepStrictEqual([anthropic.length, openai.length], [2, 2])
      assert.deepInclude(openai[1]?.body, {
        messages: [
          { role: "system", content: [{ type: "text", text: "You read invoices." }] },
          { role: "user", content: [{ type: "text", text: "What do I owe?" }] },
          {
            role: "assistant",
            content: [{ type: "text", text: "One moment." }],
            tool_calls: [
              {
                id: "toolu_1",
                type: "function",
                function: { name: "transfer_to_billing", arguments: `{"reason":"invoice"}` }
              }
            ]
          },
          { role: "tool", tool_call_id: "toolu_1", content: "The conversation is handed over to 'billing'." },
          {
            role: "assistant",
            content: null,
            tool_calls: [{ id: "call_a", type: "function", function: { name: "invoice", arguments: `{"month":7}` } }]
          },
          { role: "tool", tool_call_id: "call_a", content: "7 euros" }
        ]
      })
      const back = JSON.stringify(anthropic[1]?.body)
      assert.include(back, `"tool_use_id":"call_b"`)
      assert.include(back, "7 euros")
      assert.notInclude(back, "An invoice.")
    })
  )

  it.effect("is text for an agent in blocks, and native calls again for Claude", () =>
    Effect.gen(function* () {
      const { anthropic, openai, result } = yield* conversation("blocks")
      assert.deepInclude(result, { agent: "desk", text: "You owe 7." })
      assert.notInclude(JSON.stringify(openai[0]?.body), "tool_calls")
      assert.include(JSON.stringify(openai[0]?.body), `name=\\"transfer_to_billing\\"`)
      assert.include(JSON.stringify(anthropic[1]?.body), `"name":"transfer_to_desk"`)
    })
  )
})
