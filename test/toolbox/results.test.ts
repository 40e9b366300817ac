import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Redacted, Schema } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Content, Limits, LongResult, Media, MediaStore, Message, Recorder, Redaction, Skill } from "kernai"
import { MockProvider } from "kernai/testing"
import { command, final } from "../support/blocks.ts"
import { kernel, of } from "../support/kernel.ts"
import { told, type Told } from "../support/toolbox.ts"

const limits = Layer.succeed(Limits.Limits, { ...Limits.defaults, resultBytes: 1_000 })
const lines = Array.from({ length: 400 }, (_, index) => `line ${index} ü€😀\n`).join("")
const size = new TextEncoder().encode(lines).length

const dump = Skill.make("dump", {
  description: "Says a lot",
  input: Schema.Struct({}),
  effects: "read",
  execute: () => Effect.succeed(lines)
})

const agent = Agent.make({ instructions: "", model: "m", skills: "all", dialect: "tools", maxSteps: 60 })
const outputs = (run: Told) =>
  of(run.events, "tool_call_completed").map((event) =>
    (event.result.output ?? []).map((part) => (part.type === "text" ? part.text : `[${part.type}]`)).join("")
  )

describe("a native call that does not fit its skill", () => {
  it.effect("is told how to call it natively, and not in a block (BP-87)", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make({ calls: [{ name: "find", params: {} }] }, "done")
      const run = yield* told(agent, "?", { provider })
      const error = of(run.events, "tool_call_completed")[0]?.result.error
      assert.strictEqual(error?.name, "InvalidArguments")
      assert.isTrue(error?.message.endsWith(`Usage:           {"name": "..."}`))
    }).pipe(
      Effect.provide(
        kernel(
          Skill.make("find", {
            description: "Finds somebody",
            input: Schema.Struct({ name: Schema.String }),
            execute: () => Effect.succeed("found")
          })
        )
      )
    )
  )
})

describe("a medium a skill gave", () => {
  const paint = Skill.make("paint", {
    description: "Paints",
    input: Schema.Struct({}),
    effects: "read",
    execute: () => Effect.succeed(Content.image({ data: new Uint8Array([1, 2, 3]), mediaType: "image/png" }))
  })
  const weigh = Skill.make("weigh", {
    description: "Weighs a picture",
    input: Schema.Struct({ image: MediaStore.Reference }),
    effects: "read",
    execute: ({ image }) =>
      MediaStore.MediaStore.use((store) => Effect.map(store.bytes(image.id), (bytes) => `${bytes.length} bytes`))
  })
  const textOf = (part: Content.Content): string =>
    part.type === "text" ? part.text : part.type === "tool_result" ? part.content.map(textOf).join("") : ""

  for (const dialect of ["blocks", "tools"] as const) {
    it.effect(`is told with its id in ${dialect}, by which another skill takes it (W-21)`, () =>
      Effect.gen(function* () {
        const call = (name: string, params: object) =>
          dialect === "tools" ? { calls: [{ name, params }] } : command(name, params)
        const provider = MockProvider.make().onCall(({ messages }, turn) => {
          const [id = "nobody knows"] =
            /media_[0-9a-f]{12}/.exec(messages.flatMap(({ content }) => content.map(textOf)).join("")) ?? []
          return turn === 0 ? call("paint", {}) : turn === 1 ? call("weigh", { image: id }) : final("done")
        })
        const run = yield* told(Agent.make({ instructions: "", model: "m", skills: "all", dialect }), "?", { provider })
        assert.strictEqual(outputs(run)[1], "3 bytes")
      }).pipe(Effect.provide(kernel(paint, weigh)))
    )
  }
})

describe("the facts of a result", () => {
  const weigh = Skill.make("weigh", {
    description: "Weighs a letter",
    input: Schema.Struct({}),
    execute: () => Effect.as(Effect.sleep("3 seconds"), Skill.result("heavy", { metadata: { grams: 700 } }))
  })

  it.effect("and how long it took are told to the host, and to no model (BP-75)", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make({ calls: [{ name: "weigh" }] }, "done")
      yield* TestClock.adjust("1 hour")
      const running = yield* Effect.forkChild(told(agent, "?", { provider }))
      yield* TestClock.adjust("3 seconds")
      const { events } = yield* Fiber.join(running)
      for (const facts of [of(events, "skill_result")[0], of(events, "tool_call_completed")[0]?.result]) {
        assert.deepStrictEqual([facts?.durationMs, facts?.metadata], [3_000, { grams: 700 }])
      }
      assert.include(JSON.stringify(provider.lastCall?.messages), "heavy")
      assert.notInclude(JSON.stringify(provider.lastCall?.messages), "700")
    }).pipe(Effect.provide(kernel(weigh)))
  )
})

describe("a result that is too long", () => {
  it.effect("is cut between characters, with its size in the metadata, when nothing can read on (AC-14)", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make({ calls: [{ name: "dump" }] }, "done")
      const run = yield* told(agent, "?", { provider })
      const [output = ""] = outputs(run)
      assert.isTrue(lines.startsWith(output))
      const bytes = new TextEncoder().encode(output).length
      assert.isAtMost(bytes, 1_000)
      assert.isAbove(bytes, 996)
      const full_result = yield* Media.id(Media.fromBytes(new TextEncoder().encode(lines), "text/plain"))
      assert.deepStrictEqual(of(run.events, "tool_call_completed")[0]?.result.metadata, {
        truncated: true,
        bytes: size,
        full_result
      })
      assert.isTrue(of(run.events, "skill_result")[0]?.truncated)
    }).pipe(Effect.provide(Layer.merge(kernel(dump), limits)))
  )

  for (const [what, value, text] of [
    ["an object", { lines }, JSON.stringify({ lines })],
    ["data", Content.data({ lines }), JSON.stringify({ lines })],
    ["code", Content.code(lines), `\`\`\`\n${lines}\n\`\`\``],
    ["an error", Content.error("E", lines), `[E]: ${lines}`]
  ] as const) {
    it.effect(`is cut when it is ${what}: what counts is what a model reads (AC-14)`, () =>
      Effect.gen(function* () {
        const provider = MockProvider.make({ calls: [{ name: "dump" }] }, "done")
        const run = yield* told(agent, "?", { provider })
        const [output = ""] = outputs(run)
        assert.isTrue(text.startsWith(output))
        const bytes = new TextEncoder().encode(output).length
        assert.isAtMost(bytes, 1_000)
        assert.isAbove(bytes, 996)
      }).pipe(
        Effect.provide(
          Layer.merge(
            kernel(
              Skill.make("dump", { description: "", input: Schema.Struct({}), execute: () => Effect.succeed(value) })
            ),
            limits
          )
        )
      )
    )
  }

  it.effect("is cut over all its parts, of which media are none, also where the whole has no room (AC-14)", () =>
    Effect.gen(function* () {
      const image = Content.image({ url: "https://x.test/a.png" })
      const parts = Skill.make("dump", {
        description: "",
        input: Schema.Struct({}),
        execute: () => Effect.succeed([Content.text("a".repeat(700)), image, Content.text("b".repeat(700))])
      })
      const provider = MockProvider.make({ calls: [{ name: "dump" }] }, "done")
      const run = yield* told(agent, "?", { provider }).pipe(Effect.provide(kernel(parts)))
      const [done] = of(run.events, "tool_call_completed")
      assert.deepStrictEqual(done?.result.output, [Content.text("a".repeat(700)), image, Content.text("b".repeat(300))])
      assert.deepStrictEqual(done?.result.metadata, { truncated: true, bytes: 1_400 })
    }).pipe(Effect.provideService(Limits.Limits, { ...Limits.defaults, resultBytes: 1_000, mediaBytes: 100 }))
  )

  it.effect("can be read to its end, range by range, each within the limit", () =>
    Effect.gen(function* () {
      // A model that does what it is told at the end of each piece.
      const provider = MockProvider.make().onCall((request) => {
        const last = request.messages.at(-1)?.content[0]
        const text =
          last?.type === "tool_result" && last.content.at(-1)?.type === "text" ? last.content.at(-1) : undefined
        const hint = /go on with read_result (\{.*\})\]$/.exec(text?.type === "text" ? text.text : "")
        if (last?.type === "text") return { calls: [{ name: "dump" }] }
        return hint === null ? "done" : { calls: [{ name: "read_result", params: JSON.parse(hint[1] ?? "") }] }
      })
      const run = yield* told(agent, "?", { provider })
      assert.strictEqual(run.text, "done")
      const all = outputs(run)
      for (const output of all) assert.isAtMost(new TextEncoder().encode(output).length, 1_000)
      assert.strictEqual(all.map((output) => output.replace(/\n\[cut after .*$/, "")).join(""), lines)
    }).pipe(Effect.provide(Layer.merge(kernel(dump, LongResult.skill), limits)))
  )

  it.effect("is read as it is from wherever a range begins, at a mark that some files begin with too", () =>
    Effect.gen(function* () {
      const marked = "\uFEFFab".repeat(400)
      const long = Skill.make("dump", {
        description: "",
        input: Schema.Struct({}),
        execute: () => Effect.succeed(marked)
      })
      const provider = MockProvider.make().onCall((request, call) => {
        if (call === 0) return { calls: [{ name: "dump" }] }
        const [, id] = /"id":"(\w+)"/.exec(request.messages.map(Message.text).join("")) ?? []
        return call > 1 ? "done" : { calls: [{ name: "read_result", params: { id, offset: 500, length: 10 } }] }
      })
      const run = yield* told(agent, "?", { provider }).pipe(Effect.provide(kernel(long, LongResult.skill)))
      assert.isTrue(outputs(run)[1]?.startsWith("\uFEFFab\uFEFFab\n["))
    }).pipe(Effect.provide(limits))
  )

  it.effect("is not pointed at for an agent that may not read it", () =>
    Effect.gen(function* () {
      const own = Agent.make({ instructions: "", model: "m", skills: ["dump"], dialect: "tools" })
      const run = yield* told(own, "?", { provider: MockProvider.make({ calls: [{ name: "dump" }] }, "done") })
      assert.notInclude(outputs(run)[0], "read_result")
    }).pipe(Effect.provide(Layer.merge(kernel(dump, LongResult.skill), limits)))
  )

  it.effect("is read only where it is: other ids, other media and odd ranges are told as such", () =>
    Effect.gen(function* () {
      const id = "media_0123456789ab"
      const image = Media.fromBytes(new Uint8Array([1, 2, 3]), "image/png")
      const draw = Skill.make("draw", {
        description: "",
        input: Schema.Struct({}),
        execute: () => Effect.succeed(image)
      })
      const provider = MockProvider.make(
        { calls: [{ name: "read_result", params: { id } }] },
        { calls: [{ name: "read_result", params: { id, offset: -1 } }] },
        { calls: [{ name: "draw" }] },
        { calls: [{ name: "read_result", params: { id: yield* Media.id(image) } }] },
        "done"
      )
      const run = yield* told(agent, "?", { provider }).pipe(Effect.provide(kernel(draw, LongResult.skill)))
      assert.deepStrictEqual(
        of(run.events, "tool_call_completed").map((event) => event.result.error?.name),
        ["MediaNotFound", "InvalidArguments", undefined, "MediaNotFound"]
      )
    }).pipe(Effect.provide(limits))
  )

  it.effect("gives a whole character, however little of it is asked for, so that reading on comes to an end", () =>
    Effect.gen(function* () {
      const faces = Skill.make("dump", {
        description: "",
        input: Schema.Struct({}),
        execute: () => Effect.succeed("😀".repeat(400))
      })
      const provider = MockProvider.make().onCall((request, call) => {
        if (call === 0) return { calls: [{ name: "dump" }] }
        const [, id] = /"id":"(\w+)"/.exec(request.messages.map(Message.text).join("")) ?? []
        return call > 1 ? "done" : { calls: [{ name: "read_result", params: { id, offset: 1_202, length: 1 } }] }
      })
      const run = yield* told(agent, "?", { provider }).pipe(Effect.provide(kernel(faces, LongResult.skill)))
      assert.match(outputs(run)[1] ?? "", /^😀\n\[.*"offset":1204/)
    }).pipe(Effect.provide(limits))
  )
})

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
  // These two tell the caller what the caller said.
  const ends = new Set(["run_started", "run_completed"])
  const safe = Redaction.layer({ secrets: [Redacted.make(secret)] })

  it.effect(
    "keeps a known secret from the model, the events of its calls and the recorder, however it comes (S-7)",
    () =>
      Effect.gen(function* () {
        const recorder = yield* Effect.sync(() => Recorder.memory({ phases: true }))
        const provider = MockProvider.make(
          ...["text", "json", "fail"].map((how) => ({ calls: [{ name: "leak", params: { how } }] })),
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

  it.effect("keeps it from them where it is a key, or beside a type of its own, in JSON of any origin (S-7)", () =>
    Effect.gen(function* () {
      const recorder = yield* Effect.sync(() => Recorder.memory({ phases: true }))
      const provider = MockProvider.make({ calls: [{ name: "leak", params: { how: "key" } }] }, "done")
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

  it.effect("sends the same object for the same message, so that an adapter encodes it once", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make({ calls: [{ name: "leak", params: { how: "text" } }] }, "done")
      yield* told(agent, `Log in with ${secret}`, { provider })
      assert.strictEqual(provider.messagesAt(0)?.[0], provider.messagesAt(1)?.[0])
    }).pipe(Effect.provide(Layer.merge(kernel(leak), safe)))
  )

  it("finds secrets as they stand in JSON and between tags, and leaves the tags behind what looks like one (S-7)", () => {
    const odd = 'p&ss"w<rd>1'
    const { text } = Redaction.make({ secrets: [Redacted.make(odd)] })
    assert.strictEqual(text(JSON.stringify({ odd })), '{"odd":"<redacted>"}')
    assert.strictEqual(text("<memory>p&amp;ss&quot;w&lt;rd&gt;1</memory>"), "<memory><redacted></memory>")
    assert.strictEqual(
      text(`<block type="command">password: hunter22x</block><block type="final">b</block>`),
      `<block type="command">password: <redacted></block><block type="final">b</block>`
    )
  })

  it("passes over secrets that are hardly any, finds the longer of two, and can leave shapes alone", () => {
    const { text } = Redaction.make({
      secrets: [Redacted.make("abc"), Redacted.make("abcd"), Redacted.make("abcdef")],
      shapes: false
    })
    assert.strictEqual(text("abc abcd abcdef sk-abcdefgh12345678"), "abc <redacted> <redacted> sk-<redacted>gh12345678")
  })
})
