/** Values that the types forbid, from code without types. */
import { assert, describe, it } from "@effect/vitest"
import { NodeServices } from "@effect/platform-node"
import { Effect, Exit, Layer, Result, Schema } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { Agent, Content, Kernel, KernelError, Media, MediaStore, Protocol, ProtocolRegistry, Skill } from "kernai"
import { MockProvider } from "kernai/testing"
import { command, final } from "../support/blocks.ts"
import { folder } from "../support/folder.ts"
import { armed, hostileValues } from "../support/hostileValues.ts"
import { kernel, of } from "../support/kernel.ts"
import { told } from "../support/toolbox.ts"

const wrong: ReadonlyArray<unknown> = [null, 42, Symbol("x"), () => {}, "hologram", [null], { a: 1 }, Number.NaN]

/** The settings that a value of `wrong` may have. */
const right: { readonly [setting: string]: ReadonlyArray<unknown> } = {
  name: ["hologram"],
  description: ["hologram"],
  instructions: ["hologram"],
  model: ["hologram"],
  maxSteps: [42],
  concurrency: [42],
  taskConcurrency: [42],
  maxRepeats: [42],
  contextWindow: [42],
  reservedOutputTokens: [42]
}

const settings = [
  "name",
  "description",
  "instructions",
  "model",
  "skills",
  "protocols",
  "agents",
  "handoffs",
  "input",
  "gate",
  "maxSteps",
  "prose",
  "dialect",
  "markups",
  "grammar",
  "concurrency",
  "taskConcurrency",
  "maxRepeats",
  "contextWindow",
  "reservedOutputTokens",
  "output"
]

/** A value as code without types passes it. */
const untyped = <A>(value: unknown): A => value as A

const usual = { instructions: "", model: "m" }

describe("an agent", () => {
  it.effect("with a setting of the wrong type fails its runs with AgentConfigInvalid", () =>
    Effect.gen(function* () {
      const missed: Array<string> = []
      let tried = 0
      for (const setting of settings) {
        for (const value of [...wrong, ...hostileValues.map(([, make]) => make()), armed()]) {
          if (value === undefined || right[setting]?.includes(value) === true) continue
          // A list is no list of skills when one of its entries is none, and an Error has a name.
          if (setting === "model" && typeof value === "object") continue
          // Instructions may be a function of the context.
          if (setting === "instructions" && typeof value === "function") continue
          const provider = MockProvider.make("done")
          const agent = Agent.make({ ...usual, ...untyped<object>({ [setting]: value }) })
          const exit = yield* Effect.exit(Kernel.run(agent, "?", { provider }))
          tried++
          const error = Exit.isFailure(exit) ? exit.cause.reasons[0] : undefined
          // An error that can be yielded is an Effect, and as instructions it fails.
          const isEffect = setting === "instructions" && error?._tag === "Fail" && error.error._tag !== "ProviderError"
          const isRefused = isEffect || (error?._tag === "Fail" && error.error._tag === "AgentConfigInvalid")
          const isDefault = [
            "agents",
            "handoffs",
            "gate",
            "maxSteps",
            "prose",
            "dialect",
            "markups",
            "grammar",
            "concurrency",
            "name"
          ]
          if (
            !isRefused &&
            !(value === null && [...isDefault, "taskConcurrency", "reservedOutputTokens"].includes(setting))
          ) {
            missed.push(`${setting}: ${typeof value}`)
          }
        }
      }
      assert.deepStrictEqual(missed, [], `${missed.length} of ${tried}`)
      assert.isAbove(tried, 600)
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("is refused with the name of the invalid setting", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ ...usual, skills: untyped<"all">(null) })
      const error = yield* Effect.flip(Kernel.run(agent, "?", { provider: MockProvider.make("done") }))
      assert.deepInclude(error, { path: "skills", reason: 'expected "all" or a list of skills, got null' })
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("runs or fails typed with any input", () =>
    Effect.gen(function* () {
      const plain = Agent.make({ instructions: "", model: "m" })
      const input = Schema.Struct({ text: Schema.String })
      const withSchema = Agent.make({ instructions: "", model: "m", input })
      const ended: Array<string> = []
      const judge = (name: string, run: Effect.Effect<unknown, unknown, Kernel.Kernel>) =>
        Effect.map(Effect.exit(run), (exit) => {
          const isTyped =
            Exit.isSuccess(exit) ||
            exit.cause.reasons.every((reason) => reason._tag === "Fail" && KernelError.isKernelError(reason.error))
          if (!isTyped) ended.push(name)
        })
      for (const [name, make] of hostileValues) {
        const options = { provider: MockProvider.make("done") }
        yield* judge(name, Kernel.run(plain, untyped<Kernel.Input>(make()), options))
        yield* judge(`${name}, with a schema`, Kernel.run(withSchema, untyped<Kernel.Input>(make()), options))
        yield* judge(`${name}, in a field`, Kernel.run(withSchema, untyped<Kernel.Input>({ text: make() }), options))
      }
      assert.deepStrictEqual(ended, [])
    }).pipe(Effect.provide(kernel()))
  )
})

describe("a medium", () => {
  it("of an unknown kind is refused", () => {
    for (const value of ["hologram", "", 42, {}, Symbol("x"), true]) {
      const kind = untyped<Media.Kind>(value)
      assert.throws(() => Media.fromBytes(new Uint8Array(1), "image/png", { kind }), RangeError, "image")
      assert.throws(() => Media.fromPath("a.png", { kind }), RangeError)
      assert.throws(() => Media.fromUrl("http://a/b.png", { kind }), RangeError)
    }
    assert.throws(() => Media.fromBytes(untyped("text"), "image/png"), RangeError)
    assert.throws(() => Media.fromBytes(new Uint8Array(1), untyped(undefined)), RangeError)
  })

  it.effect("that is not made by `Media` is refused by a store", () =>
    Effect.gen(function* () {
      const store = yield* MediaStore.MediaStore
      const made = { ...Media.fromBytes(new Uint8Array(1), "image/png"), kind: untyped<Media.Kind>("hologram") }
      assert.deepInclude(yield* Effect.flip(store.put(made)), { _tag: "StoreError", reason: "invalid" })
    }).pipe(Effect.provide(MediaStore.layerMemory))
  )

  const text = (value: string) => Uint8Array.from(value, (char) => char.charCodeAt(0))
  const png = text("\x89PNG\r\n\x1a\n....")
  const samples: ReadonlyArray<readonly [bytes: Uint8Array, declared: string, recognized: string]> = [
    [png, "application/octet-stream", "image/png"],
    [png, "", "image/png"],
    [png, "image/jpeg", "image/jpeg"],
    [png, "text/plain", "text/plain"],
    [png, "image/png", "image/png"],
    [png, "IMAGE/PNG; q=1", "IMAGE/PNG; q=1"],
    [text("\xff\xd8\xff\xe0"), "image/jpg", "image/jpg"],
    [text("\xff\xd8\xff\xe0"), "image/png", "image/png"],
    [text("GIF89a.."), "image/png", "image/png"],
    [text("RIFF....WEBPVP8 "), "image/png", "image/png"],
    [text("RIFF....WAVEfmt "), "audio/mpeg", "audio/mpeg"],
    [text("%PDF-1.7"), "image/png", "image/png"],
    [text("OggS...."), "audio/opus", "audio/opus"],
    [text("ID3\x04...."), "application/octet-stream", "audio/mpeg"],
    [text("....ftypisom"), "application/octet-stream", "video/mp4"],
    [text("....ftypM4A "), "audio/m4a", "audio/m4a"],
    [text("....ftypavif"), "image/png", "image/png"],
    [text("\x1aE\xdf\xa3"), "audio/webm", "audio/webm"],
    [text("PK\x03\x04.."), "application/vnd.openxmlformats-officedocument.wordprocessingml.document", ""],
    [text("PK\x03\x04.."), "image/png", "image/png"],
    [text("a,b\n1,2"), "text/csv", "text/csv"],
    [new Uint8Array([1, 2, 3]), "image/png", "image/png"],
    [new Uint8Array(), "image/png", "image/png"]
  ]
  it("is recognized by its bytes only when its declared type is generic (BP-117)", () => {
    for (const [bytes, declared, recognized] of samples) {
      assert.strictEqual(Media.fromBytes(bytes, declared).mimeType, recognized === "" ? declared : recognized)
    }
    assert.strictEqual(Media.fromBytes(png, "application/octet-stream").kind, "image")
    assert.strictEqual(Media.fromBytes(png, "text/plain", { kind: "document" }).kind, "document")
  })

  it.effect("of a file is recognized when it is stored, whatever the name of the file", () =>
    Effect.gen(function* () {
      const root = yield* folder
      for (const name of ["upload", "photo.jpg"]) writeFileSync(join(root, name), png)
      const layer = MediaStore.layerMemoryWith({ root }).pipe(Layer.provide(NodeServices.layer))
      const found = yield* Effect.provide(
        Effect.forEach(["upload", "photo.jpg", "absent.png"], (name) =>
          Effect.gen(function* () {
            const store = yield* MediaStore.MediaStore
            const { id, kind, mimeType } = yield* store.put(Media.fromPath(name))
            assert.strictEqual((yield* store.content(id)).mediaType, mimeType)
            return [name, kind, mimeType]
          })
        ),
        layer
      )
      assert.deepStrictEqual(found, [
        ["upload", "image", "image/png"],
        ["photo.jpg", "image", "image/png"],
        ["absent.png", "image", "image/png"]
      ])
    })
  )

  it.effect("in a content keeps its given type, whatever its bytes are (BP-117)", () =>
    Effect.gen(function* () {
      const store = yield* MediaStore.MediaStore
      const [content] = yield* store.admit([Content.image({ data: png, mediaType: "image/jpeg" })])
      assert.deepInclude(content, { type: "image", mediaType: "image/jpeg" })
    }).pipe(Effect.provide(MediaStore.layerMemory))
  )
})

describe("a skill that returns nothing", () => {
  for (const value of [undefined, null]) {
    for (const dialect of ["blocks", "tools"] as const) {
      it.effect(`has an empty result: ${String(value)} in ${dialect}`, () =>
        Effect.gen(function* () {
          const call = dialect === "blocks" ? command("wipe") : { calls: [{ name: "wipe", input: {} }] }
          const provider = MockProvider.make(call, dialect === "blocks" ? final("done") : "done")
          const agent = Agent.make({ instructions: "", model: "m", skills: "all", dialect })
          const { events } = yield* told(agent, "?", { provider })
          const [result] = of(events, "tool_call_completed").map((event) => event.result)
          assert.deepStrictEqual([result?.error, result?.output], [undefined, [Content.text("")]])
        }).pipe(
          Effect.provide(
            kernel(
              Skill.make("wipe", { description: "", input: Schema.Struct({}), execute: () => Effect.succeed(value) })
            )
          )
        )
      )
    }
  }

  it.effect("may be `Effect.void`, and so may a protocol", () =>
    Effect.gen(function* () {
      const protocols = yield* ProtocolRegistry.ProtocolRegistry
      yield* protocols.register(Protocol.make("wipe", { handle: () => Effect.void }))
      const provider = MockProvider.make('<block type="wipe">x</block>', final("done"))
      const { events, text } = yield* told(Agent.make({ instructions: "", model: "m", protocols: ["wipe"] }), "?", {
        provider
      })
      assert.strictEqual(text, "done")
      assert.isUndefined(of(events, "tool_call_completed")[0]?.result.error)
      assert.isTrue(Result.isFailure(Skill.toOutput([undefined, "x"])))
    }).pipe(Effect.scoped, Effect.provide(kernel()))
  )
})
