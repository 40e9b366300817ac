/**
 * The AI SDK as the benchmarks run it: a scripted model that calls a tool which does nothing, in every step but the
 * last. Replies come whole, which is the cheapest for it. `kernai.ts` sets the same task to kernai.
 */
import type { LanguageModelV4, LanguageModelV4Content } from "@ai-sdk/provider"
import { generateText, isStepCount, jsonSchema, tool } from "ai"

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 }
}

/** A model whose replies are computed from the number of messages in the prompt. */
export const modelOf = (reply: (messages: number) => Promise<LanguageModelV4Content>): LanguageModelV4 => ({
  specificationVersion: "v4",
  provider: "mock",
  modelId: "m",
  supportedUrls: {},
  doGenerate: async ({ prompt }) => {
    const content = await reply(prompt.length)
    const unified = content.type === "text" ? "stop" : "tool-calls"
    return { content: [content], finishReason: { unified, raw: undefined }, usage, warnings: [] }
  },
  doStream: () => Promise.reject(new Error("only whole replies are asked for"))
})

const noop = tool({
  description: "Does nothing",
  inputSchema: jsonSchema<{ x: string }>({
    type: "object",
    properties: { x: { type: "string" } },
    required: ["x"]
  }),
  execute: async () => "ok"
})

/** Runs so many steps. Each reply starts after `wait`. */
export const aiSdk = async (steps: number, wait?: () => Promise<void>) => {
  let call = 0
  const model = modelOf(async () => {
    await wait?.()
    return ++call >= steps
      ? { type: "text", text: "done" }
      : { type: "tool-call", toolCallId: `c${call}`, toolName: "noop", input: '{"x":"1"}' }
  })
  await generateText({ model, prompt: "go", stopWhen: isStepCount(steps), tools: { noop } })
  if (call !== steps) throw new Error(`ai ran ${call} steps`)
}
