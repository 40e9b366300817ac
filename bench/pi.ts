/**
 * pi-agent-core as the benchmarks run it: a scripted model that calls a tool which does nothing, in
 * every step but the last. `kernai.ts` sets the same task to kernai.
 */
import { agentLoop } from "@earendil-works/pi-agent-core"
import { type AssistantMessage, createAssistantMessageEventStream, type ToolCall } from "@earendil-works/pi-ai"

export const usage = {
  input: 1,
  output: 1,
  cacheRead: 0,
  cacheWrite: 0,
  totalTokens: 2,
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 }
}

export const model = {
  id: "m",
  name: "m",
  api: "mock",
  provider: "mock",
  baseUrl: "",
  reasoning: false,
  input: ["text"],
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
  contextWindow: 1e9,
  maxTokens: 1e6
}

export const prompt = { role: "user", content: [{ type: "text", text: "go" }], timestamp: 0 }

/**
 * How much of a reply the model emits: only `done`, the final event with the whole message, or every
 * event that a streaming model has. With `final` pi has the least to do.
 */
export type Emits = "final" | "every"

/** Runs so many steps and counts the events. Each reply starts after `wait`. */
export const pi = async (steps: number, emits: Emits, wait?: () => Promise<void>) => {
  let call = 0
  const reply = () => {
    const stream = createAssistantMessageEventStream()
    const last = ++call >= steps
    const toolCall: ToolCall = { type: "toolCall", id: `c${call}`, name: "noop", arguments: { x: "1" } }
    const reason = last ? "stop" : "toolUse"
    const message: AssistantMessage = {
      role: "assistant",
      api: "mock",
      provider: "mock",
      model: "m",
      usage,
      timestamp: 0,
      content: last ? [{ type: "text", text: "done" }] : [toolCall],
      stopReason: reason
    }
    if (emits === "every") {
      stream.push({ type: "start", partial: { ...message, content: [] } })
      if (last) {
        stream.push({ type: "text_start", contentIndex: 0, partial: message })
        stream.push({ type: "text_delta", contentIndex: 0, delta: "done", partial: message })
        stream.push({ type: "text_end", contentIndex: 0, content: "done", partial: message })
      } else {
        stream.push({ type: "toolcall_start", contentIndex: 0, partial: message })
        stream.push({ type: "toolcall_delta", contentIndex: 0, delta: '{"x":"1"}', partial: message })
        stream.push({ type: "toolcall_end", contentIndex: 0, toolCall, partial: message })
      }
    }
    stream.push({ type: "done", reason, message })
    return stream
  }
  const delayed = async () => {
    await wait?.()
    return reply()
  }
  const tools = [
    {
      name: "noop",
      label: "noop",
      description: "Does nothing",
      parameters: { type: "object", properties: { x: { type: "string" } }, required: ["x"] },
      execute: async () => ({ content: [{ type: "text", text: "ok" }], details: {} })
    }
  ]
  const context = { systemPrompt: "You test.", messages: [], tools }
  const config = { model, convertToLlm: (messages: ReadonlyArray<unknown>) => messages, toolExecution: "sequential" }
  const streamFn = wait === undefined ? reply : delayed
  let count = 0
  const loop: AsyncIterable<unknown> = agentLoop(
    ...([[prompt], context, config, undefined, streamFn] as never as Parameters<typeof agentLoop>)
  )
  for await (const _ of loop) count++
  if (call !== steps) throw new Error(`pi ran ${call} steps`)
  return count
}
