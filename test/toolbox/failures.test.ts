/** What a model reads of a call that failed. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted, Schema, Stream } from "effect"
import {
  Agent,
  type Call,
  Content,
  Limits,
  Media,
  MediaStore,
  Message,
  Protocol,
  ProtocolRegistry,
  RunCodec,
  RunStore,
  Skill
} from "kernai"
import { MockProvider } from "kernai/testing"
import { command, final } from "../support/blocks.ts"
import { kernel, of } from "../support/kernel.ts"
import { told } from "../support/toolbox.ts"
import { times } from "../support/longRun.ts"

class MailFailed extends Schema.TaggedError<MailFailed>()("MailFailed", {
  reason: Schema.String,
  code: Schema.Int
}) {}

class LoginFailed extends Schema.TaggedError<LoginFailed>()("LoginFailed", {
  user: Schema.String,
  password: Schema.Redacted(Schema.String),
  note: Schema.String,
  at: Schema.Date,
  cause: Schema.Defect()
}) {
  override get message() {
    return `${this.user} may not enter`
  }
}

const failing = (execute: () => Effect.Effect<unknown, unknown>, failure?: Schema.ConstraintCodec<unknown, unknown>) =>
  Skill.make("send", { description: "Sends", input: Schema.Struct({}), failure, execute })

/** The last prompt of a run whose only call fails, and the result of that call. */
const failed = (skill: Skill.AnySkill<MediaStore.MediaStore>, dialect: Agent.Agent["dialect"] = "blocks") =>
  Effect.gen(function* () {
    const call = dialect === "blocks" ? command(skill.name) : { calls: [{ name: skill.name, input: {} }] }
    const provider = MockProvider.make(call, dialect === "blocks" ? final("done") : "done")
    const agent = Agent.make({ instructions: "", model: "m", skills: "all", dialect })
    const { events } = yield* told(agent, "?", { provider, runId: "run" })
    const [result] = of(events, "tool_call_completed").map((event): Call.CallOutcome => event.result)
    const last = provider.lastCall?.messages.at(-1)
    assert.isDefined(result)
    assert.isDefined(last)
    return { last, result, text: Message.text(last) }
  }).pipe(Effect.provide(kernel(skill)))

describe("an error with a schema", () => {
  for (const dialect of ["blocks", "tools"] as const) {
    it.effect(`reaches the model with its fields in ${dialect}`, () =>
      Effect.gen(function* () {
        const { last } = yield* failed(
          failing(() => Effect.fail(new MailFailed({ reason: "full", code: 552 }))),
          dialect
        )
        assert.include(
          JSON.stringify(last.content),
          JSON.stringify('MailFailed {"reason":"full","code":552}').slice(1, -1)
        )
      })
    )
  }

  it.effect("keeps its message, without secrets and without its cause", () =>
    Effect.gen(function* () {
      const error = new LoginFailed({
        user: "ada",
        password: Redacted.make("hunter2"),
        note: "hunter2 was refused, as was api_key=abcdef123456",
        at: new Date(0),
        cause: new Error("socket 10.0.0.1")
      })
      const { result } = yield* failed(failing(() => Effect.fail(error)))
      const note = "<redacted> was refused, as was api_key=<redacted>"
      const fields = { user: "ada", password: "<redacted>", note, at: "1970-01-01T00:00:00.000Z" }
      assert.strictEqual(result.error?.message, `ada may not enter\n${JSON.stringify(fields)}`)
      assert.strictEqual(result.error?.name, "LoginFailed")
    })
  )

  it.effect("that fits the declared schema is encoded by that schema", () =>
    Effect.gen(function* () {
      const failure = Schema.Struct({ retryAt: Schema.Date, parts: Schema.Array(Schema.Finite) })
      const value = { retryAt: new Date(0), parts: [1, 2] }
      const { result } = yield* failed(failing(() => Effect.fail(value), failure))
      assert.strictEqual(result.error?.message, '{"retryAt":"1970-01-01T00:00:00.000Z","parts":[1,2]}')
      const other = yield* failed(failing(() => Effect.fail("no"), failure))
      assert.strictEqual(other.result.error?.message, "no")
    })
  )

  it.effect("of a protocol reaches the model in the same way", () =>
    Effect.gen(function* () {
      const protocols = yield* ProtocolRegistry.ProtocolRegistry
      const mail = Protocol.make("mail", { handle: () => Effect.fail(new MailFailed({ reason: "full", code: 552 })) })
      yield* protocols.register(mail)
      const provider = MockProvider.make('<block type="mail">hello</block>', final("done"))
      const agent = Agent.make({ instructions: "", model: "m", protocols: ["mail"] })
      yield* told(agent, "?", { provider })
      const last = provider.lastCall?.messages.at(-1)
      assert.include(JSON.stringify(last), "reason")
      assert.include(JSON.stringify(last), "552")
    }).pipe(Effect.scoped, Effect.provide(kernel()))
  )
})

describe("a failure that carries a picture", () => {
  const bytes = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
  const image = Content.image({ data: bytes, mediaType: "image/png" })
  const carriers: ReadonlyArray<readonly [name: string, value: unknown]> = [
    ["a list of contents", [Content.text("the page is blocked"), image]],
    ["a result", Skill.result("the page is blocked", { media: Media.fromBytes(bytes, "image/png") })],
    [
      "an error with contents",
      Object.assign(new Error("the page is blocked"), {
        content: [{ type: "image", data: bytes, mediaType: "image/png" }]
      })
    ]
  ]
  for (const [name, value] of carriers) {
    for (const dialect of ["blocks", "tools"] as const) {
      it.effect(`passes it to the model: ${name} in ${dialect}`, () =>
        Effect.gen(function* () {
          const { last, result } = yield* failed(
            failing(() => Effect.fail(value)),
            dialect
          )
          assert.strictEqual(result.error?.message, "the page is blocked")
          const [part] = last.content
          const shown = part?.type === "tool_result" ? part.content : last.content
          assert.include(JSON.stringify(shown), "the page is blocked")
          const picture = shown.find(Content.isMedia)
          assert.match(picture?.fileId ?? "", /^media_/)
        })
      )
    }
  }

  it.effect("is stored with its run", () =>
    Effect.gen(function* () {
      const skill = failing(() => Effect.fail([Content.text("blocked"), image]))
      const stored = Effect.gen(function* () {
        const provider = MockProvider.make(command("send"), final("done"))
        yield* told(Agent.make({ instructions: "", model: "m", skills: "all" }), "?", { provider, runId: "run" })
        const store = yield* RunStore.RunStore
        return yield* Stream.runCollect(store.read("run"))
      })
      const records = yield* Effect.provide(stored, kernel(skill))
      const codec = RunCodec.make()
      for (const record of records) {
        const text = yield* Effect.fromResult(RunCodec.encodeRecord(record))
        const decoded = yield* Effect.fromResult(codec.decodeRecord(text))
        assert.isTrue(RunCodec.isSame(decoded, record))
      }
      assert.include(JSON.stringify(records), '"type":"image"')
    })
  )
})

describe("a failure of many bytes", () => {
  const size = times(50, 5) * 1024 * 1024
  const long = `begin ${"x".repeat(size)} end`
  const skills: ReadonlyArray<readonly [name: string, skill: Skill.AnySkill]> = [
    ["a text", failing(() => Effect.fail(long))],
    ["an error", failing(() => Effect.fail<unknown>(new Error(long)))],
    ["an error with a schema", failing(() => Effect.fail(new MailFailed({ reason: `${long}"}`, code: 1 })))],
    [
      "many small fields",
      failing(() => Effect.fail(Array.from({ length: 50_000 }, (_, at) => ({ at, id: `id ${at}` }))))
    ]
  ]
  for (const [name, skill] of skills) {
    it.effect(`keeps its head and its tail in the prompt and in the events: ${name}`, () =>
      Effect.gen(function* () {
        const { result, text } = yield* failed(skill)
        assert.isAtMost(new TextEncoder().encode(text).length, Limits.defaults.resultBytes + 200)
        assert.isAtMost(JSON.stringify(result).length, Limits.defaults.resultBytes + 1_000)
        assert.match(text, /\[… \d+ characters left out …\]/)
        if (name !== "many small fields") {
          assert.include(text.slice(0, 200), "begin xxx")
          assert.include(text.slice(-200), "xxx end")
        }
      })
    )
  }

  for (const resultBytes of [0, 1, 10, 64, 100, 1_000]) {
    it.effect(`obeys a limit of ${resultBytes} bytes without splitting a character`, () =>
      Effect.gen(function* () {
        const { result } = yield* failed(failing(() => Effect.fail("😀".repeat(5_000))))
        assert.isAtMost(new TextEncoder().encode(result.error?.message).length, resultBytes)
        assert.isTrue(result.error?.message.isWellFormed())
      }).pipe(Effect.provideService(Limits.Limits, Limits.make({ resultBytes })))
    )
  }

  it.effect("is short too when the model wrote the name of an unknown skill", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make({ calls: [{ name: "n".repeat(1_000_000), input: {} }] }, "done")
      const agent = Agent.make({ instructions: "", model: "m", skills: "all", dialect: "tools" })
      const { events } = yield* told(agent, "?", { provider })
      const [error] = of(events, "tool_call_completed").map((event) => event.result.error)
      assert.isAtMost(error?.message.length ?? Infinity, Limits.defaults.resultBytes)
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("shows no part of a secret where it is truncated", () =>
    Effect.gen(function* () {
      const secret = `sk-${"a1".repeat(20)}`
      for (let before = 900; before < 1_100; before += times(7, 21)) {
        const text = `${" ".repeat(before)}${secret}${" ".repeat(1_000_000)}${secret}${" ".repeat(before)}`
        const { result } = yield* failed(failing(() => Effect.fail(text)))
        assert.notInclude(result.error?.message, "a1a1")
      }
    }).pipe(Effect.provideService(Limits.Limits, Limits.make({ resultBytes: 2_000 })))
  )
})
