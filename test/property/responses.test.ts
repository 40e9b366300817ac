/**
 * Whatever OpenAI says over Responses goes back to it in its own order: reasoning right before what it led to, calls
 * before their results, and tools that it ran itself only while they are offered.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Agent, Kernel, Model, Skill } from "kernai"
import { HostedTools, OpenAiProvider } from "kernai/provider"
import { kernel } from "../support/kernel.ts"
import { cases } from "../support/property.ts"
import { key, serverSent, stub } from "../support/provider.ts"
import { faults } from "../support/wireHistory.ts"

type Item = { readonly type: string; readonly [key: string]: unknown }

const add = Skill.make("add", {
  description: "Adds",
  input: Schema.Struct({ a: Schema.Int }),
  effects: "read",
  execute: ({ a }) => (a === 3 ? Effect.fail("unlucky") : Effect.succeed(a + 1))
})

/** Numbers from a seed. */
const dice = (seed: number) => {
  let state = seed >>> 0
  return (sides: number): number => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) >>> 0
    return ((state ^ (state >>> 13)) >>> 0) % sides
  }
}

/** The items of one reply. The last reply only speaks. */
const replyOf = (roll: (sides: number) => number, turn: number, isLast: boolean): ReadonlyArray<Item> => {
  const items: Array<Item> = []
  const reason = (what: string) => {
    if (roll(3) === 0) return
    const summary = roll(2) === 0 ? [] : [{ type: "summary_text", text: `I thought of ${what}.` }]
    items.push({ type: "reasoning", id: `rs_${turn}_${items.length}`, summary, encrypted_content: `e_${turn}_${what}` })
  }
  if (!isLast && roll(3) === 0) {
    reason("search")
    const action = { type: "search", query: "q" }
    items.push({ type: "web_search_call", id: `ws_${turn}`, status: "completed", action })
  }
  if (isLast || roll(2) === 0) {
    reason("text")
    items.push({ type: "message", role: "assistant", content: [{ type: "output_text", text: `turn ${turn}` }] })
  }
  const calls = isLast ? 0 : 1 + roll(3)
  for (let index = 0; index < calls; index++) {
    reason(`call ${index}`)
    const args = roll(6) === 0 ? "no JSON" : JSON.stringify({ a: roll(5) })
    items.push({ type: "function_call", call_id: `c_${turn}_${index}`, name: "add", arguments: args })
  }
  return items
}

const streamed = (items: ReadonlyArray<Item>) =>
  serverSent([
    ...items.flatMap((item, output_index) => [
      { type: "response.output_item.added", output_index, item: { ...item, summary: [], arguments: "" } },
      { type: "response.output_item.done", output_index, item }
    ]),
    { type: "response.completed", response: { status: "completed", usage: { input_tokens: 1, output_tokens: 1 } } }
  ])

/** What the model sent, or was sent back, as far as its order matters: kinds with their ids. */
const traceOf = (items: ReadonlyArray<Item>): ReadonlyArray<string> =>
  items.flatMap(({ call_id, encrypted_content, id, role, type }) => {
    if (type === "reasoning") return [`reasoning ${String(encrypted_content)}`]
    if (type === "web_search_call") return [`search ${String(id)}`]
    if (type === "function_call") return [`call ${String(call_id)}`]
    return type === "message" && role === "assistant" ? ["text"] : []
  })

describe("a conversation over Responses", () => {
  it.effect.prop(
    "sends back every item of the model in order, in requests that OpenAI accepts",
    [Schema.Int],
    ([seed]) =>
      Effect.gen(function* () {
        const roll = dice(seed)
        const turns = 2 + roll(8)
        const replies = Array.from({ length: turns }, (_, turn) => replyOf(roll, turn, turn === turns - 1))
        const http = stub((_, call) => Effect.succeed(streamed(replies[call] ?? [])))
        const provider = yield* Effect.provide(OpenAiProvider.make({ apiKey: key, api: "responses" }), http.layer)
        const skills = [add, HostedTools.webSearch()]
        const agent = Agent.make({
          instructions: "Add.",
          model: Model.make("gpt-5"),
          skills,
          dialect: "tools",
          maxSteps: 20
        })
        const result = yield* Kernel.run(agent, "go", { provider })
        assert.strictEqual(result.turns, turns)
        http.asked.forEach(({ body }, turn) => {
          assert.deepStrictEqual(faults("openai-responses", body), [])
          const input = (body as { readonly input: ReadonlyArray<Item> }).input
          assert.deepStrictEqual(traceOf(input), replies.slice(0, turn).flatMap(traceOf))
        })
      }).pipe(Effect.provide(kernel(add))),
    cases(0.1)
  )
})
