/**
 * A reply of 100,000 tokens of 4 characters from one paced producer to a consumer, in CPU time per token.
 *
 * The same producer feeds both sides, with one token or an array of them at a time. Here pi emits
 * every event: its final event alone would carry no tokens.
 */
import { createAssistantMessageEventStream } from "@earendil-works/pi-ai"
import { agentLoop } from "@earendil-works/pi-agent-core"
import { type Array as Arr, Cause, Effect, type Pull, Stream } from "effect"
import * as Kernel from "../dist/Kernel.js"
import type * as Provider from "../dist/Provider.js"
import * as RunStore from "../dist/RunStore.js"
import * as StreamPart from "../dist/StreamPart.js"
import { agentOf, kernelOn } from "./kernai.ts"
import { model, prompt, usage } from "./pi.ts"
import { compare, cpu, ratioRow, type Row } from "./support.ts"

const count = 100_000

/** Yields the number of tokens that arrived, up to `size` each time the event loop turns. */
async function* paced(size: number): AsyncGenerator<number> {
  for (let sent = 0; sent < count; sent += size) {
    await new Promise<void>((resolve) => setImmediate(resolve))
    yield Math.min(size, count - sent)
  }
}

// ---------------------------------------------------------------- kernai

const kernel = kernelOn(RunStore.layerMemory)
const agent = agentOf(1)

type Parts = Arr.NonEmptyArray<StreamPart.StreamPart>

/** Pulls the producer with one callback for each array; no closure is made per token, as in pi's loop. */
const provider = (size: number): Provider.ProviderShape => ({
  name: "mock",
  stream: () =>
    Stream.suspend(() => {
      const source = paced(size)
      let isFirst = true
      let isOver = false
      let give: (pull: Pull.Pull<Parts>) => void = () => {}
      const read = (result: IteratorResult<number>) => {
        if (result.done === true) {
          if (isOver) return give(Cause.done())
          isOver = true
          return give(Effect.succeed([StreamPart.text("</final>"), StreamPart.finish()]))
        }
        const parts: Parts = [StreamPart.text(isFirst ? "<final>" : "abc ")]
        for (let index = 1; index < result.value; index++) parts.push(StreamPart.text("abc "))
        isFirst = false
        give(Effect.succeed(parts))
      }
      const fail = (error: unknown) => give(Effect.die(error))
      const next: Pull.Pull<Parts> = Effect.callback((resume) => {
        give = resume
        source.next().then(read, fail)
      })
      return Stream.fromPull(Effect.succeed(next))
    })
})

/** The consumer adds up in place, as pi's does. */
const kernai = async (size: number) => {
  let seen = 0
  await Kernel.stream(agent, "go", { provider: provider(size) }).pipe(
    Stream.runForEachArray((events) => {
      for (const event of events) if (event.type === "block_content") seen += event.text.length
      return Effect.void
    }),
    Effect.provide(kernel),
    Effect.runPromise
  )
  if (seen !== (count - 1) * 4) throw new Error(`kernai emitted ${seen} characters`)
}

// ---------------------------------------------------------------- pi

const pi = async (size: number) => {
  const streamFn = () => {
    const stream = createAssistantMessageEventStream()
    const content = [{ type: "text" as const, text: "" }]
    const message = {
      role: "assistant" as const,
      content,
      api: "mock",
      provider: "mock",
      model: "m",
      usage,
      stopReason: "stop" as const,
      timestamp: 0
    }
    void (async () => {
      stream.push({ type: "start", partial: message })
      stream.push({ type: "text_start", contentIndex: 0, partial: message })
      for await (const arrived of paced(size)) {
        for (let index = 0; index < arrived; index++) {
          const [block] = content
          if (block !== undefined) block.text += "abc "
          stream.push({ type: "text_delta", contentIndex: 0, delta: "abc ", partial: message })
        }
      }
      stream.push({ type: "text_end", contentIndex: 0, content: content[0]?.text ?? "", partial: message })
      stream.push({ type: "done", reason: "stop", message })
    })()
    return stream
  }
  const context = { systemPrompt: "You test.", messages: [], tools: [] }
  const config = { model, convertToLlm: (messages: ReadonlyArray<unknown>) => messages }
  const loop: AsyncIterable<{ readonly type: string }> = agentLoop(
    ...([[prompt], context, config, undefined, streamFn] as never as Parameters<typeof agentLoop>)
  )
  let seen = 0
  for await (const event of loop) if (event.type === "message_update") seen++
  if (seen < count) throw new Error(`pi emitted ${seen} updates`)
}

// ---------------------------------------------------------------- measuring

/** CPU microseconds per token on both sides, which get so many tokens at a time. */
const overPi = async (id: string, name: string, size: number, bound: number): Promise<Row> => {
  const perToken = (body: (size: number) => Promise<unknown>) => async () => (await cpu(() => body(size))) / count
  const times = await compare(perToken(kernai), perToken(pi), { warm: 3, counted: 21 })
  return ratioRow(`tokens.${id}`, `100,000 tokens ${name}: CPU per token over pi-agent-core`, times, "µs", bound)
}

export default async (): Promise<ReadonlyArray<Row>> => {
  // Compiles the producer first: otherwise the side that goes first would pay for both.
  for (let round = 0; round < 4; round++) for await (const _ of paced(1));
  return [await overPi("single", "one at a time", 1, 1.15), await overPi("arrays", "in arrays of 64", 64, 0.25)]
}
