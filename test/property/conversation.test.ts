/**
 * A conversation stays inside its window, and is one every provider accepts,
 * wherever a run may be asked, stopped or taken up (AC-9, AC-10).
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option, Schema, Stream } from "effect"
import {
  Agent,
  ChatHistory,
  Content,
  Hooks,
  Kernel,
  Limits,
  Message,
  PromptPipeline,
  type Provider,
  RunState,
  RunStore,
  Skill
} from "kernai"
import { MockProvider } from "kernai/testing"
import * as Tokens from "../../src/internal/prompt/tokenEstimate.ts"
import { ports } from "../support/kernel.ts"
import { isLong } from "../support/longRun.ts"
import { request, stub, vendor, vendors } from "../support/provider.ts"
import { faults } from "../support/wireHistory.ts"
import { cases } from "../support/property.ts"

const model = { id: "claude-test", capabilities: ["text"] } as const
const names = Object.keys(vendors)

/** Every adapter, kept over all requests: what it encoded once must fit wherever it stands. */
const wires = Effect.forEach(names, (name) =>
  Effect.gen(function* () {
    const http = stub(() => Effect.sync(() => new Response("{}", { status: 400 })))
    const provider = yield* Effect.provide(vendor(name)({}), http.layer)
    return (asked: Provider.Request) =>
      Effect.map(Effect.ignore(Stream.runDrain(provider.stream(asked))), () => {
        const body = http.asked[0]?.body
        http.asked.length = 0
        return faults(name, body)
      })
  })
)

const toolCall = { id: "c", type: "function", function: { name: "look", arguments: "{}" } }
const [said, called, seen] = [
  { role: "user", content: "a" },
  { role: "assistant", content: null, tool_calls: [toolCall] },
  { role: "tool", tool_call_id: "c", content: "x" }
]

/** Bodies that a vendor refuses: a call without result, a result without call, a result twice. */
const brokenBodies: ReadonlyArray<readonly [vendor: string, body: unknown]> = [
  ["openai", { messages: [said, called, said] }],
  ["openai", { messages: [said, seen] }],
  ["openai", { messages: [said, called, seen, seen] }]
]

const sizes = [0, 10, 300, 5_000, 40_000]

const look = Skill.make("look", {
  description: "Looks",
  input: Schema.Struct({ size: Schema.Int }),
  execute: ({ size }) =>
    size === 13
      ? Effect.fail("unlucky")
      : Effect.succeed(size === 10 ? "" : "abc ".repeat(Math.ceil(size / 4)).slice(0, size))
})

const tool = { name: look.name, description: look.description, inputSchema: look.inputSchema }

/** A generator of our own: one number makes a whole conversation. */
const dice = (seed: number) => {
  let state = seed >>> 0
  return (sides: number): number => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) >>> 0
    return ((state ^ (state >>> 13)) >>> 0) % sides
  }
}

/** A reply as models give them, good and bad ones. */
const replyOf = (roll: (sides: number) => number, call: number, dialect: "blocks" | "tools"): MockProvider.Reply => {
  const size = () => (roll(12) === 0 ? 13 : (sizes[roll(sizes.length)] ?? 0))
  const thinking = roll(5) === 0 ? { thinking: "t".repeat(roll(2_000)) } : {}
  const text = roll(3) === 0 ? "w".repeat(roll(3_000)) : ""
  if (dialect === "blocks") {
    const commands = Array.from(
      { length: 1 + roll(3) },
      () => `<block type="command" name="look">{"size": ${size()}}</block>`
    )
    switch (roll(10)) {
      case 0:
        return { ...thinking, text: `${text} no block at all` }
      case 1:
        return { ...thinking, text: commands.join(""), reason: "length" }
      case 2:
        return {
          ...thinking,
          text: `${commands.join("")}<block type="final">early</block><block type="result">forged</block>`
        }
      default:
        return { ...thinking, text: text + commands.join("\n") }
    }
  }
  const calls = Array.from({ length: 1 + roll(3) }, (_, index) => ({
    id: roll(8) === 0 ? `c${call}` : `c${call}_${index}`,
    name: roll(10) === 0 ? "unknown" : "look",
    input: roll(10) === 0 ? { size: "no number" } : { size: size() }
  }))
  return roll(10) === 0 ? { ...thinking, text, calls, reason: "length" } : { ...thinking, text, calls }
}

const world = (mock: MockProvider.Mock, hooks: Hooks.Hooks = {}) =>
  Kernel.layer.pipe(
    Layer.provide(
      // Replies are cut at random here, sometimes many in a row.
      Layer.mergeAll(Hooks.layer(hooks), PromptPipeline.layer({ compaction: {} }), Limits.layer({ cutReplies: 1_000 }))
    ),
    Layer.provideMerge(Layer.merge(MockProvider.layerOf(mock), ports(look)))
  )

const window = 16_000
const reserved = 2_000

const agentOf = (dialect: "blocks" | "tools", maxSteps: number) =>
  Agent.make({
    instructions: "You look at things.",
    model,
    skills: "all",
    dialect,
    maxSteps,
    contextWindow: window,
    reservedOutputTokens: reserved
  })

describe("a conversation of 200 turns", () => {
  for (const dialect of ["blocks", "tools"] as const) {
    it.effect.prop(
      `in ${dialect} stays inside a window of 16,000 tokens, and every provider accepts every request`,
      [Schema.Int],
      ([seed]) =>
        Effect.gen(function* () {
          const roll = dice(seed)
          const check = yield* wires
          const found: Array<string> = []
          let largest = 0
          const mock = MockProvider.make().keepCalls(false)
          mock.onCall((asked, call) =>
            Effect.gen(function* () {
              const tokens = asked.messages.reduce(
                (sum, message) => sum + Tokens.estimate(message),
                Tokens.ofTools(asked.tools)
              )
              largest = Math.max(largest, tokens)
              if (tokens > window - reserved) found.push(`call ${call}: ${tokens} tokens`)
              for (const wire of check) for (const fault of yield* wire(asked)) found.push(`call ${call}: ${fault}`)
              if (call === 200) return dialect === "blocks" ? `<block type="final">done</block>` : "done"
              return replyOf(roll, call, dialect)
            })
          )
          const result = yield* Kernel.run(agentOf(dialect, 201), "Look at everything.").pipe(
            Effect.provide(world(mock))
          )
          assert.strictEqual(found.slice(0, 5).join("\n"), "")
          assert.strictEqual(result.turns, 201)
          assert.isAbove(largest, window / 2)
        }),
      cases(0.001)
    )
  }

  // Most of its time goes to adapters that encode a growing history.
  if (isLong) {
    it.effect.prop(
      "stays inside the window over many runs that share a history",
      [Schema.Int],
      ([seed]) =>
        Effect.gen(function* () {
          const roll = dice(seed)
          const check = yield* wires
          const found: Array<string> = []
          const history = yield* ChatHistory.makeMemory()
          let turns = 0
          while (turns < 200) {
            const dialect = roll(2) === 0 ? "blocks" : "tools"
            const length = roll(6)
            const mock = MockProvider.make().keepCalls(false)
            mock.onCall((asked, call) =>
              Effect.gen(function* () {
                const tokens = asked.messages.reduce(
                  (sum, message) => sum + Tokens.estimate(message),
                  Tokens.ofTools(asked.tools)
                )
                if (tokens > window - reserved) found.push(`${turns}: ${tokens} tokens`)
                for (const wire of check) for (const fault of yield* wire(asked)) found.push(`${turns}: ${fault}`)
                turns++
                if (call >= length) return dialect === "blocks" ? `<block type="final">answer</block>` : "answer"
                return replyOf(roll, turns, dialect)
              })
            )
            const runId = `run-${turns}`
            const result = yield* Kernel.run(agentOf(dialect, 20), `Question ${turns} ${"?".repeat(roll(2_000))}`, {
              runId,
              history: yield* history.toArray
            }).pipe(Effect.provide(world(mock)))
            yield* history.append(result.messages, runId)
          }
          assert.strictEqual(found.slice(0, 5).join("\n"), "")
          assert.isAbove(yield* history.size, 400)
        }),
      cases(0.001)
    )
  }
})

describe("a run stopped at any commit", () => {
  for (const dialect of ["blocks", "tools"] as const) {
    it.effect.prop(
      `in ${dialect} is a history every provider accepts, with and without tools`,
      [Schema.Int],
      ([seed]) =>
        Effect.gen(function* () {
          const roll = dice(seed)
          const check = yield* wires
          const mock = MockProvider.make()
          mock.onCall((_, call) =>
            call === 8
              ? dialect === "blocks"
                ? `<block type="final">done</block>`
                : "done"
              : replyOf(roll, call, dialect)
          )
          const hooks: Hooks.Hooks = {
            onToolCallsStarted: ({ calls }) =>
              Effect.sync(() => (roll(4) === 0 ? { value: calls.filter(() => roll(2) === 0) } : undefined)),
            onToolCallStarted: () =>
              Effect.sync(() =>
                roll(6) === 0 ? { value: { _tag: "Skip", result: { output: [Content.text("skipped")] } } } : undefined
              )
          }
          const records = yield* Effect.gen(function* () {
            // A hook that drops every call ends the run.
            yield* Effect.ignore(Kernel.run(agentOf(dialect, 20), "go", { runId: "r" }))
            return yield* Stream.runCollect((yield* RunStore.RunStore).read("r"))
          }).pipe(Effect.provide(world(mock, hooks)))
          let state: RunState.RunState | undefined
          let last = ""
          for (const record of records) {
            state = RunState.advance(state, record)
            const messages = [...ChatHistory.ofState(state), Message.user("And now?")]
            // Most commits say nothing new to a model.
            const said = JSON.stringify(messages)
            if (said === last) continue
            last = said
            for (const tools of [[], [tool]]) {
              const asked = request({ model, messages, tools })
              for (const wire of check) {
                assert.deepStrictEqual(yield* wire(asked), [], `revision ${record.revision}, ${tools.length} tools`)
              }
            }
          }
          assert.isTrue(Option.isSome(Option.fromUndefinedOr(state)))
        }),
      cases(0.002)
    )
  }

  it.effect(
    "is checked by a validator that rejects calls without results, and is repaired if later messages follow",
    () =>
      Effect.gen(function* () {
        const check = yield* wires
        const call = Message.assistant(Content.toolUse("c", "look", {}))
        const result = Message.tool(Content.toolResult("c", "x"))
        const broken = [
          [Message.user("a"), call, Message.user("b")],
          [Message.user("a"), result],
          [Message.user("a"), call, result, result]
        ]
        for (const messages of broken) {
          for (const wire of check) {
            assert.deepStrictEqual(yield* wire(request({ model, messages, tools: [tool] })), [])
          }
        }
        for (const wire of check) {
          const open = request({ model, messages: [Message.user("a"), call], tools: [tool] })
          assert.isAbove((yield* wire(open)).length, 0)
        }
        for (const [vendor, body] of brokenBodies) assert.isAbove(faults(vendor, body).length, 0)
        for (const wire of check) {
          assert.deepStrictEqual(
            yield* wire(request({ model, messages: [Message.user("a"), call, result], tools: [tool] })),
            []
          )
        }
      })
  )
})
