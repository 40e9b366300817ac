import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Agent, Kernel, Media, MediaStore, Model, RunStore, RunWorker } from "kernai"
import { MockProvider } from "kernai/testing"
import { kernel } from "../support/kernel.ts"

const png = Uint8Array.of(0x89, 0x50, 0x4e, 0x47)
const agent = Agent.make({
  name: "looker",
  instructions: "",
  model: Model.make("m", { capabilities: ["text", "vision"] })
})

/** A model that says how many bytes of the picture it can read. */
const looking = MockProvider.make().onCall(({ media, messages }) => {
  const part = messages.flatMap(({ content }) => content).find(({ type }) => type === "image")
  const id = part?.type === "image" ? (part.fileId ?? "") : ""
  return Effect.match(media.bytes(id), {
    onFailure: ({ _tag }) => `<block type="final">${_tag}</block>`,
    onSuccess: ({ length }) => `<block type="final">${length} bytes</block>`
  })
})

const mediaOf = (runId: string) =>
  Effect.scoped(
    Effect.flatMap(
      MediaStore.MediaStore.use((media) => media.run(runId)),
      ({ size }) => size
    )
  )

describe("a medium of a submitted run", () => {
  it.effect("is kept in memory until the run has ended", () =>
    Effect.gen(function* () {
      const runId = yield* Kernel.submit(agent, ["Look", Media.fromBytes(png, "image/png")], { provider: looking })
      assert.strictEqual(yield* mediaOf(runId), 1)
      yield* RunWorker.runOnce({ agents: [agent], resume: () => ({ provider: looking }) })
      assert.include(JSON.stringify(yield* RunStore.recordsOf(runId)), "4 bytes")
      assert.strictEqual(yield* mediaOf(runId), 0)
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("is refused in memory when too many runs wait with media", () =>
    Effect.gen(function* () {
      const look = Kernel.submit(agent, ["Look", Media.fromBytes(png, "image/png")], { provider: looking })
      for (let run = 0; run < 1_000; run++) yield* look
      const error = yield* Effect.flip(look)
      assert.deepInclude({ ...error }, { _tag: "LimitExceeded", value: 1_000 })
      assert.lengthOf(yield* RunStore.RunStore.use((store) => store.list()), 1_000)
    }).pipe(Effect.provide(Layer.fresh(kernel())))
  )
})
