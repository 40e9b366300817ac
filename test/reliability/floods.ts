/**
 * Replies that do not want to end, and what is kept of them.
 */
import { Effect, Layer, Result } from "effect"
import { Agent, Kernel, Limits, MediaStore, ProtocolRegistry, RunStore, SkillRegistry } from "kernai"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { chunk } from "../support/chatStream.ts"
import { stub, vendor } from "../support/provider.ts"

/** What became of a flood. */
export interface Flooded {
  /** The most that was kept at any time beyond what was there before, in bytes. */
  readonly peak: number
  /** Bytes that were read of one reply before it was refused. */
  readonly read: number
  /** The error the run failed with. */
  readonly error: string | undefined
}

export const megabyte = 1024 * 1024
const letters = "x".repeat(64 * 1024)

/** What is said first, then again and again. */
export const shapes = {
  "one line": ["data: ", letters],
  "4-byte deltas": [chunk({ content: "<final>" }), chunk({ content: "abc " }).repeat(500)],
  "an endless tag": [chunk({ content: '<block type="' }), chunk({ content: letters })],
  "64 KiB deltas": [chunk({ content: "<final>" }), chunk({ content: letters })]
} as const

setFlagsFromString("--expose-gc")
const collect: () => void = runInNewContext("gc")

/** What is kept by now: values, and the bytes behind arrays, which are elsewhere. */
const kept = () => {
  collect()
  const { arrayBuffers, heapUsed } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

const agent = Agent.make({ instructions: "You test.", model: { id: "m", capabilities: ["text"] } })
const kernel = Kernel.layerNoProvider.pipe(
  Layer.provide([SkillRegistry.layer(), ProtocolRegistry.layer(), MediaStore.layerMemory, RunStore.layerMemory]),
  Layer.orDie
)

/** Runs an agent whose model says so many bytes of a shape, with the limits everybody has unless told. */
export const flood = async (
  [first, then]: readonly [first: string, then: string],
  bytes: number,
  limits: Partial<Limits.Limits> = {}
): Promise<Flooded> => {
  const encoder = new TextEncoder()
  const [head, body] = [encoder.encode(first), encoder.encode(then)]
  const before = kept()
  let [peak, read] = [0, 0]
  const reply = () => {
    let [said, looked] = [0, 0]
    return new ReadableStream<Uint8Array>({
      pull: (controller) => {
        if (said >= bytes) return controller.close()
        const next = said === 0 ? head : body
        said += next.length
        read = Math.max(read, said)
        controller.enqueue(next.slice())
        if (said - looked < 4 * megabyte) return
        looked = said
        peak = Math.max(peak, kept() - before)
      }
    })
  }
  const headers = { "content-type": "text/event-stream" }
  const http = stub(() => Effect.sync(() => new Response(reply(), { headers })))
  const run = Effect.gen(function* () {
    const provider = yield* Effect.provide(vendor("openai")({}), http.layer)
    return yield* Effect.result(Kernel.run(agent, "go", { provider }))
  })
  const result = await run.pipe(
    Effect.provide(kernel),
    Effect.provideService(Limits.Limits, { ...Limits.defaults, ...limits }),
    Effect.ensuring(Effect.sync(() => (peak = Math.max(peak, kept() - before)))),
    Effect.runPromise
  )
  return {
    peak,
    read,
    error: Result.isFailure(result) ? `${result.failure._tag}: ${result.failure.message}` : undefined
  }
}
