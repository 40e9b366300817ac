import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import type { McpClientError } from "effect/ai/McpClientError"
import { Kept } from "../../src/mcp/internal/reconnect.ts"

/** A list that is read as often as it is asked for, each time until it is told what came of it. */
const served = () => {
  const kept = new Kept<string>()
  const reads: Array<Deferred.Deferred<string, McpClientError>> = []
  const read = Effect.suspend(() => {
    const answer = Deferred.makeUnsafe<string, McpClientError>()
    reads.push(answer)
    return Deferred.await(answer)
  })
  const ask = Effect.forkChild(kept.orRead(read), { startImmediately: true })
  const answer = (index: number, text: string) => Deferred.succeed(reads[index]!, text)
  return { kept, reads, ask, answer }
}

describe("Kept", () => {
  it.effect("is read once for all who ask meanwhile, and kept", () =>
    Effect.gen(function* () {
      const { answer, ask, kept, reads } = served()
      const asking = yield* Effect.replicateEffect(ask, 1_000)
      assert.lengthOf(reads, 1)
      yield* answer(0, "one")
      assert.deepStrictEqual(new Set(yield* Fiber.joinAll(asking)), new Set(["one"]))
      assert.isTrue(kept.isKept())
      assert.strictEqual(yield* Effect.flatMap(ask, Fiber.join), "one")
      assert.lengthOf(reads, 1)
    })
  )

  it.effect("is read again for who asks after it changed, and only what was read last is kept", () =>
    Effect.gen(function* () {
      const { answer, ask, kept, reads } = served()
      const early = yield* ask
      kept.forget()
      const late = yield* ask
      assert.lengthOf(reads, 2)
      yield* answer(0, "old")
      assert.strictEqual(yield* Fiber.join(early), "old")
      assert.isFalse(kept.isKept())
      const later = yield* ask
      yield* answer(1, "new")
      assert.deepStrictEqual(yield* Fiber.joinAll([late, later]), ["new", "new"])
      assert.strictEqual(yield* Effect.flatMap(ask, Fiber.join), "new")
      assert.lengthOf(reads, 2)
    })
  )
})
