/**
 * 100,000 tokens of 4 characters from one paced producer to a consumer, in CPU time per token.
 *
 * The same producer feeds both: a promise per piece, or per array of pieces.
 * `node bench/tokens.ts`, after `npm ci` in bench/.
 */
import { createAssistantMessageEventStream } from "@mariozechner/pi-ai"
import { agentLoop } from "@mariozechner/pi-agent-core"
import { type Array as Arr, Cause, Effect, Layer, type Pull, Stream } from "effect"
import { fileURLToPath } from "node:url"
import * as Agent from "../src/Agent.ts"
import * as Kernel from "../src/Kernel.ts"
import * as MediaStore from "../src/MediaStore.ts"
import * as ProtocolRegistry from "../src/ProtocolRegistry.ts"
import type * as Provider from "../src/Provider.ts"
import * as RunStore from "../src/RunStore.ts"
import * as SkillRegistry from "../src/SkillRegistry.ts"
import * as StreamPart from "../src/StreamPart.ts"
import { model, prompt, usage } from "./pi.ts"
import { against, cpu, type Row, table } from "./support.ts"

const count = 100_000

/** Hands out `size` pieces at a time, each time after the event loop had its turn. */
async function* paced(size: number): AsyncGenerator<number> {
  for (let sent = 0; sent < count; sent += size) {
    await new Promise<void>((resolve) => setImmediate(resolve))
    yield Math.min(size, count - sent)
  }
}

// ---------------------------------------------------------------- kernai

const kernel = Kernel.layer.pipe(
  Layer.provide([SkillRegistry.layer(), ProtocolRegistry.layer(), MediaStore.layerMemory, RunStore.layerMemory])
)
const agent = Agent.make({ instructions: "You test.", model: { id: "m", capabilities: ["text"] } })

/** Pulls the producer piece by piece, one effect for each. Like the other's loop it makes no function for each. */
const provider = (size: number): Provider.ProviderShape => ({
  name: "mock",
  stream: () =>
    Stream.suspend(() => {
      const source = paced(size)
      let first = true
      let over = false
      let give: (pull: Pull.Pull<Parts>) => void = () => {}
      const read = (result: IteratorResult<number>) => {
        if (result.done === true) {
          if (over) return give(Cause.done())
          over = true
          return give(Effect.succeed([StreamPart.text("</final>"), StreamPart.finish()]))
        }
        const parts: Parts = [StreamPart.text(first ? "<final>" : "abc ")]
        for (let index = 1; index < result.value; index++) parts.push(StreamPart.text("abc "))
        first = false
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

type Parts = Arr.NonEmptyArray<StreamPart.StreamPart>

/** The consumer adds up in place, as the other's does: in an `Effect.sync` for each array it costs some 3 % more. */
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
  if (seen !== (count - 1) * 4) throw new Error(`saw ${seen} characters`)
}

// ---------------------------------------------------------------- pi

const pi = async () => {
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
      for await (const size of paced(1)) {
        for (let index = 0; index < size; index++) {
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
  if (seen < count) throw new Error(`saw ${seen} updates`)
}

// ---------------------------------------------------------------- measuring

/** The producer alone: what both pay before they do anything. */
const alone = async () => {
  let sum = 0
  for await (const size of paced(1)) sum += size
  return sum
}

export const tokensBench = async (): Promise<ReadonlyArray<Row>> => {
  const perToken = (body: () => Promise<unknown>) => async () => (await cpu(body)) / count
  const overPi = async (name: string, body: () => Promise<unknown>, bound: number): Promise<Row> => {
    const { one, other, ratio } = await against(perToken(body), perToken(pi), { warm: 2, counted: 48 })
    const times = `${one.toFixed(2)} against ${other.toFixed(2)} µs`
    return { name: `${name} over pi-agent-core (${times})`, value: ratio, bound, pass: ratio <= bound }
  }
  // What both read from is compiled for neither: else whoever has the first turn pays some 5 % for all that follow.
  for (let round = 0; round < 4; round++) await alone()
  return [
    await overPi("tokens one at a time", () => kernai(1), 1),
    await overPi("tokens in arrays of 64", () => kernai(64), 0.5),
    await overPi("the producer alone", alone, Infinity)
  ]
}

if (process.argv[1] === fileURLToPath(import.meta.url)) table("tokens", await tokensBench())
