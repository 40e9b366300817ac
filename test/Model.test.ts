import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { Model } from "kernai"

describe("Model", () => {
  it("takes and gives text unless more is said (BP-151)", () => {
    assert.deepStrictEqual(Model.make("x").capabilities, ["text"])
    assert.isTrue(Model.supports(Model.textOnly, "text"))
    assert.isFalse(Model.supports(Model.textOnly, "text", "vision"))
    assert.isTrue(Model.supports(Model.textOnly))
  })

  it("names the media it takes and gives in the order its capabilities are declared (BP-151)", () => {
    const model = Model.make("m", { capabilities: ["document_in", "text", "audio_out", "vision", "image_gen"] })
    assert.deepStrictEqual(Model.mediaInputs(model), ["document", "image"])
    assert.deepStrictEqual(Model.mediaOutputs(model), ["audio", "image"])
    assert.deepStrictEqual(Model.mediaInputs(Model.gemini25Pro), ["image", "audio", "video", "document"])
  })

  it("is the same model by id and capabilities in order (BP-151)", () => {
    assert.isTrue(Model.isSame(Model.llava, Model.make("llava", { capabilities: ["text", "vision"], provider: "x" })))
    assert.isFalse(Model.isSame(Model.llava, Model.make("llava", { capabilities: ["vision", "text"] })))
    assert.isFalse(Model.isSame(Model.llava, Model.llama31))
  })

  it("guesses by the first family named in an id, else text (BP-182)", () => {
    const guesses: ReadonlyArray<readonly [string, ReadonlyArray<Model.Capability>]> = [
      ["Claude-Next", ["text", "vision"]],
      ["gpt-4o-2026", ["text", "vision"]],
      ["gemma3:4b", ["text", "vision"]],
      ["gemma:2b", ["text"]],
      ["llama3.2-vision", ["text", "vision"]],
      ["mistral", ["text"]]
    ]
    for (const [id, capabilities] of guesses) assert.deepStrictEqual(Model.guess(id), capabilities, id)
  })

  it("survives the run state unchanged, and refuses an empty id (BP-151, CP-17)", () => {
    const codec = Schema.fromJsonString(Model.Model)
    for (const model of [Model.textOnly, Model.claudeSonnet4, Model.gemini25Pro, Model.gpt4o]) {
      assert.deepStrictEqual(Schema.decodeSync(codec)(Schema.encodeSync(codec)(model)), model)
    }
    assert.throws(() => Schema.decodeSync(Model.Model)({ id: "", capabilities: [] }))
  })
})
