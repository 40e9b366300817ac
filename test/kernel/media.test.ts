import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option, Schema } from "effect"
import {
  Content,
  Kernel,
  Limits,
  Media,
  MediaStore,
  Message,
  Model,
  ProtocolRegistry,
  RunStore,
  Skill,
  SkillRegistry
} from "kernai"
import { MockProvider } from "kernai/testing"
import { final } from "../support/blocks.ts"
import { kernel, of } from "../support/kernel.ts"
import { agent } from "../support/echo.ts"
import { told } from "../support/toolbox.ts"

describe("media", () => {
  const png = Uint8Array.of(0x89, 0x50, 0x4e, 0x47)
  const seeing: Model.Model = { id: "seeing", capabilities: ["text", "vision"] }

  it.effect("given as input are stored and referred to by id in the prompt (BP-34, CP-11)", () =>
    Effect.gen(function* () {
      const mock = MockProvider.make(final("a picture"))
      yield* Kernel.run({ ...agent, model: seeing }, ["Look:", Media.fromBytes(png, "image/png")], { provider: mock })
      const parts = mock.messagesAt(0)?.at(-1)?.content ?? []
      assert.deepInclude(parts[1], { type: "image", mediaType: "image/png" })
      assert.match(JSON.stringify(parts[1]), /media_[0-9a-f]{12}/)
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("of a result keep their given type and kind, and the event says what their bytes are (BP-117)", () =>
    Effect.gen(function* () {
      const photo = Uint8Array.of(0xff, 0xd8, 0xff, 0xe0)
      const mock = MockProvider.make('<block type="command" name="scan">{}</block>', final("seen"))
      const scan = Skill.make("scan", {
        description: "Scans",
        input: Schema.Struct({}),
        effects: "read",
        execute: () =>
          Effect.succeed([
            Media.fromBytes(photo, "text/plain", { kind: "document" }),
            Media.fromBytes(Uint8Array.of(...photo, 1), "image/jpeg")
          ])
      })
      const run = yield* told({ ...agent, model: seeing, skills: [scan] }, "Scan it.", { provider: mock })
      assert.strictEqual(run.text, "seen")
      const [result] = of(run.events, "skill_result")
      assert.deepStrictEqual(
        result?.media?.map(({ bytesType, mediaType, type }) => [type, mediaType, bytesType]),
        [
          ["document", "text/plain", "image/jpeg"],
          ["image", "image/jpeg", undefined]
        ]
      )
      const parts = mock.messagesAt(1)?.at(-1)?.content ?? []
      assert.deepInclude(
        parts.find(({ type }) => type === "document"),
        { mediaType: "text/plain" }
      )
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("of earlier messages leave half of the room for media the run creates", () =>
    Effect.gen(function* () {
      const image = (fill: number) => Content.image({ data: new Uint8Array(80_000).fill(fill), mediaType: "image/png" })
      const history = [1, 2, 3].map((fill) => Message.make("user", [image(fill)]))
      const provider = MockProvider.make(final("seen"))
      yield* Kernel.run({ ...agent, model: seeing }, "Sure?", { provider, history, runId: "r" })
      const { prompt } = Option.getOrThrow(yield* RunStore.RunStore.use(({ load }) => load("r")))
      const inside = prompt.slice(0, 3).map(({ content }) => content.some((part) => Content.isMedia(part) && part.data))
      assert.deepStrictEqual(inside, [false, true, true])
    }).pipe(Effect.provide(kernel()), Effect.provideService(Limits.Limits, { ...Limits.defaults, mediaBytes: 200_000 }))
  )

  it.effect("of earlier messages stay inline when they are small (BP-34)", () =>
    Effect.gen(function* () {
      const history = [Message.user(["Look:", Content.image({ data: new Uint8Array(65_536), mediaType: "image/png" })])]
      const mock = MockProvider.make(final("a picture"))
      const store = yield* MediaStore.MediaStore
      const held = yield* store.run("r")
      yield* Kernel.run({ ...agent, model: seeing }, "Sure?", { provider: mock, history, runId: "r" })
      assert.deepStrictEqual(yield* held.list, [])
      assert.strictEqual(mock.messagesAt(0)?.[1]?.content[1], history[0]?.content[1])
    }).pipe(Effect.scoped, Effect.provide(kernel()))
  )

  it.effect("of earlier messages are stored and referred to by id when they are large and there is room (CP-11)", () =>
    Effect.gen(function* () {
      const image = (bytes: number) => Content.image({ data: new Uint8Array(bytes).fill(7), mediaType: "image/png" })
      const history = [
        Message.make("user", ["Look:", image(65_537)], { name: "ada" }),
        Message.assistant([Content.toolUse("c", "draw")]),
        Message.tool([Content.toolResult("c", [image(80_000)])]),
        Message.tool([Content.toolResult("d", "plain")])
      ]
      const mock = MockProvider.make(final("a picture"))
      yield* Kernel.run({ ...agent, model: seeing }, "Sure?", { provider: mock, history, runId: "r" })
      const { prompt } = Option.getOrThrow(yield* RunStore.RunStore.use(({ load }) => load("r")))
      const [first, ...rest] = prompt
      assert.strictEqual(first?.name, "ada")
      assert.match(JSON.stringify(first?.content[1]), /media_[0-9a-f]{12}/)
      // The second image is too large for the store, so it stays inline; messages without media are not touched.
      for (const [index, message] of rest.slice(0, 3).entries()) assert.strictEqual(message, history[index + 1])
    }).pipe(Effect.provide(kernel()), Effect.provideService(Limits.Limits, { ...Limits.defaults, mediaBytes: 150_000 }))
  )

  it.effect("made by a skill appear on the next turn and are found by the id the model writes (BP-72, W-21)", () =>
    Effect.gen(function* () {
      const draw = Skill.make("draw", {
        description: "",
        input: Schema.String,
        produces: ["image"],
        execute: () => Effect.succeed(Media.fromBytes(png, "image/png"))
      })
      const size = Skill.make("size", {
        description: "",
        input: Schema.Struct({ image: MediaStore.Reference }),
        execute: ({ image }) =>
          Effect.map(
            MediaStore.MediaStore.use((store) => store.bytes(image.id)),
            (bytes) => `${bytes.length} bytes`
          )
      })
      const mock = MockProvider.make().onCall((request) => {
        const text = request.messages.map(Message.text).join("\n")
        const id = /media_[0-9a-f]{12}/.exec(text)?.[0]
        if (id === undefined) return '<block type="command" name="draw">x</block>'
        return text.includes("4 bytes") ? final("done") : `<block type="command" name="size">{"image": "${id}"}</block>`
      })
      const skills = Layer.mergeAll(SkillRegistry.layer(draw, size)).pipe(Layer.provide(MediaStore.layerMemory))
      const result = yield* Kernel.run({ ...agent, model: seeing }, "go", { provider: mock }).pipe(
        Effect.provide(
          Kernel.layerNoProvider.pipe(
            Layer.provide([skills, ProtocolRegistry.layer(), MediaStore.layerMemory, RunStore.layerMemory])
          )
        )
      )
      assert.strictEqual(result.text, "done")
    })
  )
})
