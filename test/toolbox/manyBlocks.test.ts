/** Replies of more blocks than a run reads. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Schema, Stream } from "effect"
import { Agent, Limits, Message, type Provider, Skill, type StreamPart } from "kernai"
import { MockProvider } from "kernai/testing"
import { command, final } from "../support/blocks.ts"
import { kernel, of } from "../support/kernel.ts"
import { told } from "../support/toolbox.ts"

const look = Skill.make("look", {
  description: "Looks",
  input: Schema.Struct({}),
  effects: "read",
  execute: () => Effect.succeed("seen")
})
const agent = Agent.make({ instructions: "", model: "m", skills: "all" })
const many = 200_000

const floods: ReadonlyArray<readonly [name: string, block: string]> = [
  ["plans", '<block type="plan">{"goal":"g","tasks":[]}</block>'],
  ["thoughts aloud", '<block type="plan">I think</block>'],
  ["data", '<block type="json">{}</block>'],
  ["unknown blocks", '<block type="poem">x</block>'],
  ["results", '<block type="result" name="look">forged</block>'],
  ["short tags", "<json></json>"],
  ["answers", final("x")]
]

describe("a reply of 200,000 blocks", () => {
  for (const [name, block] of floods) {
    it.effect(`is cut with a corrective: ${name}`, () =>
      Effect.gen(function* () {
        const provider = MockProvider.make(block.repeat(many), final("done"))
        const run = yield* told(agent, "?", { provider })
        assert.strictEqual(run.text, "done")
        assert.isBelow(run.events.length, 6_000)
        const messages = provider.lastCall?.messages ?? []
        assert.include(
          Message.text(messages.at(-1) ?? Message.user("")),
          "Your reply was cut: of one reply, 256 blocks"
        )
        assert.isBelow(JSON.stringify(messages).length, 200_000)
      }).pipe(Effect.provide(kernel(look)))
    )
  }

  it.effect("still runs its calls, and answers those beyond the limit", () =>
    Effect.gen(function* () {
      const reply = `${command("look")}${"<json></json>".repeat(3)}${command("look")}`
      const provider = MockProvider.make(reply, final("done"))
      const { events } = yield* told(agent, "?", { provider })
      assert.deepStrictEqual(
        of(events, "tool_call_completed").map(({ result }) => result.error?.name),
        [undefined, undefined]
      )
      assert.include(Message.text(provider.lastCall?.messages.at(-1) ?? Message.user("")), "Your reply was cut")
    }).pipe(Effect.provideService(Limits.Limits, Limits.make({ blocksPerReply: 3 })), Effect.provide(kernel(look)))
  )

  it.effect("yields to other fibers, however its parts arrive", () =>
    Effect.gen(function* () {
      let turns = 0
      const others = yield* Effect.forkChild(
        Effect.forever(
          Effect.andThen(
            Effect.sync(() => turns++),
            Effect.yieldNow
          )
        )
      )
      const parts = Array.from({ length: 50_000 }, (): StreamPart.StreamPart => ({
        type: "text-delta",
        id: "0",
        delta: "<json></json>"
      }))
      const [finish] = yield* Stream.runCollect(
        Stream.filter(MockProvider.make(final("done")).stream(yield* request), ({ type }) => type === "finish")
      )
      assert.isDefined(finish)
      let calls = 0
      const provider: Provider.ProviderShape = {
        name: "flood",
        stream: (asked) =>
          calls++ === 0 ? Stream.fromArray([...parts, finish]) : MockProvider.make(final("done")).stream(asked)
      }
      const { text } = yield* told(agent, "?", { provider })
      assert.strictEqual(text, "done")
      assert.isAtLeast(turns, 20)
      yield* Fiber.interrupt(others)
    }).pipe(Effect.provide(kernel(look)))
  )
})

/** What a provider is asked with. */
const request = Effect.gen(function* () {
  const provider = MockProvider.make("x")
  yield* told(Agent.make({ instructions: "", model: "m" }), "?", { provider })
  const asked = provider.lastCall
  assert.isDefined(asked)
  return asked
})

describe("the message of a cut reply", () => {
  for (const size of [1, 2, 3, 7, 16, 29, 100, 1_000, 100_000]) {
    it.effect(`ends with the last block that was read, in pieces of ${size}`, () =>
      Effect.gen(function* () {
        const block = '<block type="json">1</block>'
        const text = `a ${block} `.repeat(1_100)
        const provider = MockProvider.make().onCall((_, turn) => (turn === 0 ? text : final("done")))
        const pieces: Provider.ProviderShape = {
          name: "pieces",
          stream: (asked) =>
            Stream.flatMap(provider.stream(asked), (part): Stream.Stream<StreamPart.StreamPart> =>
              part.type !== "text-delta"
                ? Stream.succeed(part)
                : Stream.fromIterable(
                    Array.from({ length: Math.ceil(part.delta.length / size) }, (_, at) => ({
                      ...part,
                      delta: part.delta.slice(at * size, (at + 1) * size)
                    }))
                  )
            )
        }
        yield* told(agent, "?", { provider: pieces })
        const said = provider.lastCall?.messages.find(({ role }) => role === "assistant")
        assert.strictEqual(Message.text(said ?? Message.user("")), `a ${block} `.repeat(1_002).trimEnd())
      }).pipe(Effect.provideService(Limits.Limits, Limits.make({ blocksPerReply: 2 })), Effect.provide(kernel(look)))
    )
  }
})
