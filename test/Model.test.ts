import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { Model } from "kernai"

describe("Model", () => {
  it("accepts and produces text by default (BP-151)", () => {
    assert.deepStrictEqual(Model.make("x").capabilities, ["text"])
    assert.isTrue(Model.supports(Model.textOnly, "text"))
    assert.isFalse(Model.supports(Model.textOnly, "text", "vision"))
    assert.isTrue(Model.supports(Model.textOnly))
  })

  it("lists the media it accepts and produces in the order of its capabilities (BP-151)", () => {
    const model = Model.make("m", { capabilities: ["document_in", "text", "audio_out", "vision", "image_gen"] })
    assert.deepStrictEqual(Model.mediaInputs(model), ["document", "image"])
    assert.deepStrictEqual(Model.mediaOutputs(model), ["audio", "image"])
    assert.deepStrictEqual(Model.mediaInputs(Model.gemini25Pro), ["image", "audio", "video", "document"])
  })

  it("is equal by id and by capabilities in order (BP-151)", () => {
    assert.isTrue(Model.isSame(Model.llava, Model.make("llava", { capabilities: ["text", "vision"], provider: "x" })))
    assert.isFalse(Model.isSame(Model.llava, Model.make("llava", { capabilities: ["vision", "text"] })))
    assert.isFalse(Model.isSame(Model.llava, Model.llama31))
  })

  it("infers capabilities from the first model family in an id, else text (BP-182)", () => {
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

  it("round-trips through the run state, and rejects an empty id (BP-151, CP-17)", () => {
    const codec = Schema.fromJsonString(Model.Model)
    for (const model of [Model.textOnly, Model.claudeSonnet4, Model.gemini25Pro, Model.gpt4o]) {
      assert.deepStrictEqual(Schema.decodeSync(codec)(Schema.encodeSync(codec)(model)), model)
    }
    assert.throws(() => Schema.decodeSync(Model.Model)({ id: "", capabilities: [] }))
  })
})
