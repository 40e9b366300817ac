import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted, Schema } from "effect"
import { Agent, Content, Message, Recorder, Redaction, Skill } from "kernai"
import { MockProvider } from "kernai/testing"
import { kernel } from "./support/kernel.ts"
import { told } from "./support/toolbox.ts"

const agent = Agent.make({ instructions: "", model: "m", skills: "all", dialect: "tools", maxSteps: 60 })

describe("Redaction", () => {
  const secret = 'p"ss-w0rd'
  const leak = Skill.make("leak", {
    description: "Says what it should not",
    input: Schema.Struct({ how: Schema.String }),
    execute: ({ how }) => {
      if (how === "fail") return Effect.fail({ _tag: "Refused", message: `wrong password ${secret}` })
      const keyed = { type: "image", [secret]: 1, url: secret }
      const valued = { deep: [{ password: secret }], key: "sk-abcdefgh12345678" }
      return Effect.succeed(how === "text" ? `the password is ${secret}` : how === "key" ? keyed : valued)
    }
  })
  // These two return the caller's own input.
  const ends = new Set(["run_started", "run_completed"])
  const safe = Redaction.layer({ secrets: [Redacted.make(secret)] })

  it.effect(
    "hides a known secret from the model, the events of its calls and the recorder, wherever it appears (S-7)",
    () =>
      Effect.gen(function* () {
        const recorder = yield* Effect.sync(() => Recorder.memory({ phases: true }))
        const provider = MockProvider.make(
          ...["text", "json", "fail"].map((how) => ({ calls: [{ name: "leak", input: { how } }] })),
          "done"
        )
        const run = yield* told(agent, `Log in with ${secret}`, { provider, runId: "r" }).pipe(
          Effect.provideService(Recorder.Recorder, recorder)
        )
        assert.strictEqual(run.text, "done")
        const quoted = JSON.stringify(secret).slice(1, -1)
        const seen = [
          JSON.stringify(provider.calls.map((request) => request.messages)),
          JSON.stringify(run.events.filter((event) => !ends.has(event.type))),
          recorder.toJson()
        ]
        for (const text of seen) {
          for (const hidden of [secret, quoted, JSON.stringify(quoted).slice(1, -1), "sk-abcdefgh"])
            assert.notInclude(text, hidden)
          assert.include(text, "<redacted>")
        }
      }).pipe(Effect.provide(Layer.merge(kernel(leak), safe)))
  )

  it.effect("hides a secret that is an object key, or is beside a `type` field, in any JSON (S-7)", () =>
    Effect.gen(function* () {
      const recorder = yield* Effect.sync(() => Recorder.memory({ phases: true }))
      const provider = MockProvider.make({ calls: [{ name: "leak", input: { how: "key" } }] }, "done")
      const history = [
        Message.user(Content.data({ [secret]: { type: "thinking", content: secret } })),
        Message.assistant(Content.toolUse("c", "old", { [secret]: [1] })),
        Message.tool(Content.toolResult("c", [Content.data({ deep: [{ [secret]: 1 }] })]))
      ]
      yield* told(agent, "?", { provider, history, runId: "r" }).pipe(
        Effect.provideService(Recorder.Recorder, recorder)
      )
      const asked = JSON.stringify(provider.calls.map((request) => request.messages))
      const quoted = JSON.stringify(secret).slice(1, -1)
      for (const text of [asked, recorder.toJson()]) assert.notInclude(text, quoted)
      for (const json of [
        { "<redacted>": { type: "thinking", content: "<redacted>" } },
        { "<redacted>": [1] },
        { deep: [{ "<redacted>": 1 }] },
        { type: "image", "<redacted>": 1, url: "<redacted>" }
      ]) {
        assert.include(asked, JSON.stringify(json))
      }
    }).pipe(Effect.provide(Layer.merge(kernel(leak), safe)))
  )

  it.effect("sends the same object for the same message, so an adapter encodes it once", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make({ calls: [{ name: "leak", input: { how: "text" } }] }, "done")
      yield* told(agent, `Log in with ${secret}`, { provider })
      assert.strictEqual(provider.messagesAt(0)?.[0], provider.messagesAt(1)?.[0])
    }).pipe(Effect.provide(Layer.merge(kernel(leak), safe)))
  )

  it("finds secrets inside JSON and between tags, and keeps the tag that follows one (S-7)", () => {
    const odd = 'p&ss"w<rd>1'
    const { text } = Redaction.make({ secrets: [Redacted.make(odd)] })
    assert.strictEqual(text(JSON.stringify({ odd })), '{"odd":"<redacted>"}')
    assert.strictEqual(text("<memory>p&amp;ss&quot;w&lt;rd&gt;1</memory>"), "<memory><redacted></memory>")
    assert.strictEqual(
      text(`<block type="command">password: hunter22x</block><block type="final">b</block>`),
      `<block type="command">password: <redacted></block><block type="final">b</block>`
    )
  })

  it("ignores very short secrets, prefers the longer of two, and can disable pattern matching", () => {
    const { text } = Redaction.make({
      secrets: [Redacted.make("abc"), Redacted.make("abcd"), Redacted.make("abcdef")],
      shapes: false
    })
    assert.strictEqual(text("abc abcd abcdef sk-abcdefgh12345678"), "abc <redacted> <redacted> sk-<redacted>gh12345678")
  })
})
