import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { Agent, Content, Limits, LongResult, Media, Message, Skill } from "kernai"
import { MockProvider } from "kernai/testing"
import { kernel, of } from "./support/kernel.ts"
import { outputs, told } from "./support/toolbox.ts"

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

/** An output is head and tail of the text, with a note of how much is left out. */
const assertEnds = (text: string, output: string) => {
  const bytes = (part: string) => new TextEncoder().encode(part).length
  const [, head = "", left, tail = ""] = /^([^]*)\n\[… (\d+) bytes left out …\]\n([^]*)$/.exec(output) ?? []
  assert.isTrue(text.startsWith(head))
  assert.isTrue(text.endsWith(tail))
  assert.strictEqual(bytes(head) + Number(left) + bytes(tail), bytes(text))
  assert.isAtMost(bytes(output), 1_000)
  assert.isAbove(Math.min(bytes(head), bytes(tail)), 450)
}

describe("a result that is too long", () => {
  it.effect(
    "keeps head and tail and says so, with its size in the metadata, when no skill can read the rest (AC-14)",
    () =>
      Effect.gen(function* () {
        const provider = MockProvider.make({ calls: [{ name: "dump" }] }, "done")
        const run = yield* told(agent, "?", { provider })
        const [output = ""] = outputs(run)
        assertEnds(lines, output)
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
    it.effect(`is truncated when it is ${what}, by the length of the text a model reads (AC-14)`, () =>
      Effect.gen(function* () {
        const provider = MockProvider.make({ calls: [{ name: "dump" }] }, "done")
        const run = yield* told(agent, "?", { provider })
        const [output = ""] = outputs(run)
        assertEnds(text, output)
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

  it.effect("is truncated across all its text parts, media aside, also when the whole cannot be stored (AC-14)", () =>
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
      assert.deepStrictEqual(done?.result.output, [
        Content.text("a".repeat(468)),
        Content.text("\n[… 464 bytes left out …]\n"),
        image,
        Content.text("b".repeat(468))
      ])
      assert.deepStrictEqual(done?.result.metadata, { truncated: true, bytes: 1_400 })
    }).pipe(Effect.provideService(Limits.Limits, { ...Limits.defaults, resultBytes: 1_000, mediaBytes: 100 }))
  )

  it.effect("can be read to the end, range by range, each within the limit", () =>
    Effect.gen(function* () {
      // A model that follows the notice at the end of each range.
      const provider = MockProvider.make().onCall((request) => {
        const last = request.messages.at(-1)?.content[0]
        const text = last?.type === "tool_result" ? last.content.map(Content.toText).join("") : ""
        const hint = /go on with read_result (\{.*\})\]$/m.exec(text)
        if (last?.type === "text") return { calls: [{ name: "dump" }] }
        return hint === null ? "done" : { calls: [{ name: "read_result", input: JSON.parse(hint[1] ?? "") }] }
      })
      const run = yield* told(agent, "?", { provider })
      assert.strictEqual(run.text, "done")
      const all = outputs(run)
      for (const output of all) assert.isAtMost(new TextEncoder().encode(output).length, 1_000)
      const [first = "", ...rest] = all.map((output) => output.split(/\n\[cut after .*\n?/))
      assert.strictEqual([first[0], ...rest.map(([read]) => read)].join(""), lines)
      assert.isTrue(lines.endsWith(first[1] ?? ""))
    }).pipe(Effect.provide(Layer.merge(kernel(dump, LongResult.skill), limits)))
  )

  it.effect("is read unchanged from any offset, also at a byte order mark", () =>
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
        return call > 1 ? "done" : { calls: [{ name: "read_result", input: { id, offset: 500, length: 10 } }] }
      })
      const run = yield* told(agent, "?", { provider }).pipe(Effect.provide(kernel(long, LongResult.skill)))
      assert.isTrue(outputs(run)[1]?.startsWith("\uFEFFab\uFEFFab\n["))
    }).pipe(Effect.provide(limits))
  )

  it.effect("is not referred to for an agent that may not read it", () =>
    Effect.gen(function* () {
      const own = Agent.make({ instructions: "", model: "m", skills: ["dump"], dialect: "tools" })
      const run = yield* told(own, "?", { provider: MockProvider.make({ calls: [{ name: "dump" }] }, "done") })
      assert.notInclude(outputs(run)[0], "read_result")
    }).pipe(Effect.provide(Layer.merge(kernel(dump, LongResult.skill), limits)))
  )

  it.effect("is found only by its own id; other ids, other media and invalid ranges are refused with the reason", () =>
    Effect.gen(function* () {
      const id = "media_0123456789ab"
      const image = Media.fromBytes(new Uint8Array([1, 2, 3]), "image/png")
      const draw = Skill.make("draw", {
        description: "",
        input: Schema.Struct({}),
        execute: () => Effect.succeed(image)
      })
      const provider = MockProvider.make(
        { calls: [{ name: "read_result", input: { id } }] },
        { calls: [{ name: "read_result", input: { id, offset: -1 } }] },
        { calls: [{ name: "draw" }] },
        { calls: [{ name: "read_result", input: { id: yield* Media.id(image) } }] },
        "done"
      )
      const run = yield* told(agent, "?", { provider }).pipe(Effect.provide(kernel(draw, LongResult.skill)))
      assert.deepStrictEqual(
        of(run.events, "tool_call_completed").map((event) => event.result.error?.name),
        ["MediaNotFound", "InvalidArguments", undefined, "MediaNotFound"]
      )
    }).pipe(Effect.provide(limits))
  )

  it.effect("returns at least one whole character for any range, so reading on terminates", () =>
    Effect.gen(function* () {
      const faces = Skill.make("dump", {
        description: "",
        input: Schema.Struct({}),
        execute: () => Effect.succeed("😀".repeat(400))
      })
      const provider = MockProvider.make().onCall((request, call) => {
        if (call === 0) return { calls: [{ name: "dump" }] }
        const [, id] = /"id":"(\w+)"/.exec(request.messages.map(Message.text).join("")) ?? []
        return call > 1 ? "done" : { calls: [{ name: "read_result", input: { id, offset: 1_202, length: 1 } }] }
      })
      const run = yield* told(agent, "?", { provider }).pipe(Effect.provide(kernel(faces, LongResult.skill)))
      assert.match(outputs(run)[1] ?? "", /^😀\n\[.*"offset":1204/)
    }).pipe(Effect.provide(limits))
  )
})
