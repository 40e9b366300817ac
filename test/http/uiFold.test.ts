/** The message of a run, folded from live events and from stored ones. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema, Stream } from "effect"
import { Agent, Kernel, MediaStore, ProtocolRegistry, RunEvent, RunStore, Skill, SkillRegistry } from "kernai"
import { MockProvider } from "kernai/testing"
import { UiFold } from "../../src/http/internal/uiFold.ts"
import { command, final } from "../support/blocks.ts"

const pay = Skill.make("pay", {
  description: "Pays",
  input: Schema.Struct({ to: Schema.String }),
  execute: ({ to }) => Effect.succeed({ paid: to })
})

/** The live and the stored events of a run in one turn after the other. */
const eventsOf = (dialect: "blocks" | "tools", replies: ReadonlyArray<MockProvider.Reply>) =>
  Effect.gen(function* () {
    const agent = Agent.make({ instructions: "", model: "scripted", skills: "all", dialect })
    const live = yield* Stream.runCollect(Kernel.stream(agent, "go", { runId: "one" }))
    return { live, stored: yield* Stream.runCollect(Kernel.follow("one")) }
  }).pipe(
    Effect.provide(
      Kernel.layer.pipe(
        Layer.provide([
          MockProvider.layerOf(MockProvider.make(...replies).withChunking(3)),
          SkillRegistry.layer(pay),
          ProtocolRegistry.layer(),
          MediaStore.layerMemory
        ]),
        Layer.provideMerge(RunStore.layerMemory)
      )
    )
  )

/** The chunks of events, with the deltas of a part as one and without streamed inputs. */
const messageOf = (events: ReadonlyArray<RunEvent.RunEvent>) => {
  const fold = new UiFold({ urlOf: (id) => `/media/${id}` })
  const parts: Array<Record<string, unknown>> = []
  for (const chunk of events.flatMap((event) => fold.push(event))) {
    const last = parts.at(-1)
    if (/^tool-input-(?:start|delta)$/.test(chunk.type)) continue
    if (last?.["type"] === chunk.type && "delta" in chunk)
      last["delta"] = `${String(last["delta"])}${String(chunk["delta"])}`
    else parts.push({ ...chunk })
  }
  return parts
}

describe("the message of a run in a page", () => {
  for (const [dialect, replies] of [
    ["blocks", [`On it.\n${command("pay", { to: "Eva" })}\nSoon done.`, final("Eva is paid.")]],
    ["tools", [{ thinking: "Whom?", text: "I pay Eva.", calls: [{ name: "pay", input: { to: "Eva" } }] }, "Done."]]
  ] as const) {
    it.effect(`is the same from live and from stored events (${dialect})`, () =>
      Effect.gen(function* () {
        const { live, stored } = yield* eventsOf(dialect, replies)
        const message = messageOf(live)
        assert.deepStrictEqual(messageOf(stored), message)
        assert.isAbove(message.filter(({ type }) => type === "text-delta").length, 1)
      })
    )

    it.effect(`is complete when a follower joins, or falls behind, in the middle of a reply (${dialect})`, () =>
      Effect.gen(function* () {
        const { live, stored } = yield* eventsOf(dialect, replies)
        const textOf = (events: ReadonlyArray<RunEvent.RunEvent>) =>
          messageOf(events)
            .flatMap(({ delta, type }) => (type === "text-delta" ? [delta] : []))
            .join("")
        const whole = textOf(stored)
        const first = live.findIndex(({ type }) => type === "model_completed")
        for (let cut = 0; cut < first; cut++) {
          // What was live until the cut, then the rest from the store.
          const rest = live.slice(cut).filter((event) => "revision" in event)
          assert.strictEqual(textOf([...live.slice(0, cut), ...rest]), whole, `cut at ${cut}`)
        }
      })
    )
  }

  it.effect("withdraws a reply that the model was asked to give again", () =>
    Effect.gen(function* () {
      const { live } = yield* eventsOf("blocks", ["No block at all.", final("Now.")])
      const types = messageOf(live).map(({ type }) => type)
      assert.deepStrictEqual(types.slice(0, 7), [
        "start",
        "start-step",
        "text-start",
        "text-delta",
        "reset-step",
        "finish-step",
        "start-step"
      ])
    })
  )
})

describe("the questions of a message", () => {
  it("lack those of a call that waits for a time alone", () => {
    const question = { name: "sleep", input: {}, reason: "Waits" }
    const metadata = {
      questions: [
        { ...question, callId: "timer", asking: { message: "Waits", isTimer: true } },
        { ...question, callId: "asked" }
      ]
    }
    const scope = { runId: "one", rootRunId: "one", step: 0, depth: 0, taskId: undefined, at: 0, revision: 1 }
    const chunks = new UiFold({ urlOf: (id) => id }).push({ ...scope, type: "paused", reason: "asks", metadata })
    assert.deepStrictEqual(
      chunks.flatMap((chunk) => (chunk.type === "tool-approval-request" ? [chunk["toolCallId"]] : [])),
      ["asked"]
    )
  })
})

describe("the metadata of a message", () => {
  it.effect("has no cost where no price is known, and tells cached and reasoning tokens", () =>
    Effect.gen(function* () {
      const { stored } = yield* eventsOf("blocks", [final("done")])
      const fold = new UiFold({ urlOf: (id) => id })
      const finish = stored.flatMap((event) => fold.push(event)).find((chunk) => chunk.type === "finish")
      const text = JSON.stringify(finish)
      assert.notInclude(text, "costUsd")
      for (const name of ["cachedInputTokens", "reasoningTokens", "totalTokens"]) assert.include(text, name)
    })
  )
})
