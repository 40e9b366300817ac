import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Agent, Dialect, Limits, Skill, StreamPart } from "kernai"
import { MockProvider } from "kernai/testing"
import { kernel, of } from "./support/kernel.ts"
import { told } from "./support/toolbox.ts"

const add = Skill.make("add", {
  description: "Adds two numbers",
  input: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
  effects: "read",
  execute: ({ a, b }) => Effect.succeed(a + b)
})

const read = (dialect: Dialect.Dialect, text: string): Dialect.Reply => {
  const reader = dialect.reader({ text: () => {}, block: () => {}, part: () => {} }, Limits.defaults, {
    provider: "p",
    model: "m"
  })
  reader.push([StreamPart.text(text), StreamPart.finish()])
  return reader.end()
}

/** A call of each markup, as models write it. */
const written: ReadonlyArray<readonly [name: string, markup: Dialect.Markup, text: string]> = [
  ["Hermes", "tool_call", 'Let me see.\n<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>'],
  [
    "Qwen coder",
    "tool_call",
    "<tool_call>\n<function=add>\n<parameter=a>\n1\n</parameter>\n<parameter=b>\n2\n</parameter>\n</function>\n</tool_call>"
  ],
  ["Llama", "function", '<function=add>{"a": 1, "b": 2}</function>'],
  [
    "older Claude",
    "invoke",
    '<function_calls>\n<invoke name="add">\n<parameter name="a">1</parameter>\n<parameter name="b">2</parameter>\n</invoke>\n</function_calls>'
  ],
  ["Mistral", "bracket", '[TOOL_CALLS] [{"name": "add", "arguments": {"a": 1, "b": 2}}]'],
  ["newer Mistral", "bracket", '[TOOL_CALLS]add[ARGS]{"a": 1, "b": 2}'],
  ["a fence", "fenced", 'So:\n```json\n{"tool": "add", "parameters": {"a": 1, "b": 2}}\n```\n'],
  ["OpenAI's JSON", "json", '[{"type":"function","function":{"name":"add","arguments":"{\\"a\\":1,\\"b\\":2}"}}]'],
  ["JSON blocks", "json", '{"blocks":[{"type":"command","name":"add","content":{"a":1,"b":2}}]}']
]

describe("Dialect.of", () => {
  for (const name of ["blocks", "tools"] as const) {
    it(`keeps thinking that a vendor expects back as part of the reply, in ${name}`, () => {
      const reader = () =>
        Dialect.of(name).reader(
          { text: () => {}, block: () => {}, part: () => {} },
          { ...Limits.defaults, replyLength: 1_000 },
          { provider: "p", model: "m" }
        )
      const noted = (type: "reasoning-start" | "reasoning-end", id: string, metadata: StreamPart.Metadata) =>
        reader().push([{ type, id, metadata }, StreamPart.finish()])
      const signature = "s".repeat(1_001)
      for (const metadata of [
        { p: { signature } },
        { p: signature },
        { other: { deep: [[{ signature }]] } },
        { p: Array.from({ length: 1_001 }, () => null) },
        { [signature]: true }
      ]) {
        assert.strictEqual(noted("reasoning-start", "1", metadata)?.limit, "reply")
        assert.strictEqual(noted("reasoning-end", "1", metadata)?.limit, "reply")
      }
      const many = reader()
      const ids = Array.from({ length: 100 }, (_, n) => `a thought ${n}`)
      assert.strictEqual(many.push(ids.map((id) => ({ type: "reasoning-start", id })))?.limit, "reply")
      // Said again with every piece, it is kept once, and counted once.
      const again = reader()
      const metadata = { p: { signature: "s".repeat(800) } }
      for (let n = 0; n < 50; n++) {
        assert.isUndefined(again.push([{ type: "reasoning-delta", id: "1", delta: "hm", metadata }]))
      }
      assert.strictEqual(again.push([{ type: "reasoning-delta", id: "2", delta: "", metadata }])?.limit, "reply")
      const reply = again.end()
      assert.deepInclude(reply.content[0], { type: "thinking", signature: metadata.p })
    })
  }

  it("keeps thinking in its place after the text, since a vendor rejects thinking that moved", () => {
    const reader = Dialect.of("tools").reader({ text: () => {}, block: () => {}, part: () => {} }, Limits.defaults, {
      provider: "p",
      model: "m"
    })
    const thought = (id: string): ReadonlyArray<StreamPart.StreamPart> => [
      { type: "reasoning-start", id },
      { type: "reasoning-delta", id, delta: `thought ${id}` },
      { type: "reasoning-end", id }
    ]
    reader.push([...thought("a"), ...thought("b"), StreamPart.text(""), StreamPart.text("Let me see. ")])
    reader.push([...thought("c"), { type: "tool-call", id: "1", name: "look", params: {} }, StreamPart.finish()])
    const told = reader.end().content.map((part) => (part.type === "thinking" ? part.content : part.type))
    assert.deepStrictEqual(told, ["thought a", "thought b", "text", "thought c", "tool_use"])
  })

  it("keeps thinking, texts and calls in the order of the reply, and texts apart that the vendor sent apart", () => {
    const reader = Dialect.of("tools").reader({ text: () => {}, block: () => {}, part: () => {} }, Limits.defaults, {
      provider: "p",
      model: "m"
    })
    const call = (id: string) => ({ type: "tool-call", id, name: "look", params: {} }) as const
    reader.push([{ type: "reasoning-delta", id: "0", delta: "first" }, call("1"), StreamPart.text("a", "1")])
    reader.push([StreamPart.text("b", "1"), StreamPart.text("c", "2"), { type: "reasoning-end", id: "3" }, call("2")])
    reader.push([StreamPart.text("d", "2"), StreamPart.finish()])
    const { content, text } = reader.end()
    const told = content.map((part) => (part.type === "text" ? part.text : part.type))
    assert.deepStrictEqual(told, ["thinking", "tool_use", "ab", "c", "thinking", "tool_use", "d"])
    assert.strictEqual(text, "abcd")
  })

  for (const [name, markup, text] of written) {
    it(`reads a call in the markup of ${name}, as a block and as a native call`, () => {
      const block = read(Dialect.of("blocks", [markup]), text).blocks[0]
      assert.strictEqual(block?.type, "command")
      assert.strictEqual(block?.name, "add")
      assert.deepStrictEqual(JSON.parse(block?.content ?? ""), { a: 1, b: 2 })
      const call = read(Dialect.of("tools", [markup]), text).calls[0]
      assert.strictEqual(call?.name, "add")
      assert.deepStrictEqual(call?.params, { a: 1, b: 2 })
    })

    it(`leaves the markup of ${name} as text unless the agent enables it`, () => {
      for (const dialect of [Dialect.of("blocks"), Dialect.of("tools")]) {
        const reply = read(dialect, text)
        assert.deepStrictEqual([reply.blocks, reply.calls, reply.text], [[], [], text])
      }
    })
  }

  it("prefers blocks and native calls over any other markup", () => {
    const both = '<block type="final">x</block> <tool_call>{"name":"add","arguments":{}}</tool_call>'
    assert.deepStrictEqual(
      read(Dialect.of("blocks", Dialect.markups), both).blocks.map((block) => block.type),
      ["final"]
    )
  })

  it("reads several calls in order, in the first markup it finds", () => {
    const text =
      '<tool_call>{"name":"add","arguments":{"a":1,"b":1}}</tool_call><tool_call>{"name":"add","arguments":{"a":2,"b":2}}</tool_call>'
    const reply = read(Dialect.of("tools", Dialect.markups), text)
    assert.deepStrictEqual(
      reply.calls.map((call) => call.params),
      [
        { a: 1, b: 1 },
        { a: 2, b: 2 }
      ]
    )
  })

  it("leaves unreadable markup as text: broken JSON, a truncated call, a word in a fence, a list of other values", () => {
    for (const text of [
      '<tool_call>{"name": "add", "arguments": {"a": 1</tool_call>',
      '<tool_call>{"name": "add", "arguments": {}}',
      '```json\n{"total": 3}\n```',
      '[{"name":"add","arguments":{}}, 4]',
      `{"name":"add","arguments":${"[".repeat(200)}${"]".repeat(200)}}`,
      "[TOOL_CALLS] nothing"
    ]) {
      const reply = read(Dialect.of("tools", Dialect.markups), text)
      assert.deepStrictEqual([reply.calls, reply.text], [[], text])
    }
  })

  it("preserves the answer of JSON blocks in the native dialect", () => {
    const reply = read(Dialect.of("tools", ["json"]), '{"blocks":[{"type":"final","content":"done"}]}')
    assert.strictEqual(reply.text, "done")
  })

  it.effect("lets a model call skills in its own markup, and shows results in the dialect of the run", () =>
    Effect.gen(function* () {
      const [, markup, text] = written[0] ?? ["", "json", ""]
      for (const dialect of ["blocks", "tools"] as const) {
        const answer = dialect === "blocks" ? '<block type="final">3</block>' : "3"
        const provider = MockProvider.make(text, answer)
        const agent = Agent.make({ instructions: "", model: "m", skills: "all", dialect, markups: [markup] })
        const run = yield* told(agent, "1 + 2?", { provider })
        assert.strictEqual(run.text, "3")
        assert.deepStrictEqual(
          of(run.events, "skill_result").map((event) => event.output),
          [3]
        )
        const [said, result] = provider.lastCall?.messages.slice(-2) ?? []
        if (dialect === "blocks") {
          assert.deepStrictEqual([result?.role, said?.content.length], ["user", 1])
        } else {
          const use = said?.content.find((part) => part.type === "tool_use")
          const answered = result?.content[0]
          assert.strictEqual(result?.role, "tool")
          assert.strictEqual(
            use?.type === "tool_use" && use.callId,
            answered?.type === "tool_result" && answered.callId
          )
          assert.deepStrictEqual(said?.content[0], { type: "text", text: "Let me see." })
        }
      }
    }).pipe(Effect.provide(kernel(add)))
  )
})
