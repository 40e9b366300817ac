import { assert, describe, it } from "@effect/vitest"
import { Equal, Result, Schema } from "effect"
import { Content, Message } from "kernai"

const image = Content.image({ fileId: "media_1", mediaType: "image/png" })

describe("Message", () => {
  it("accepts a string, a part or a list of both, and always holds a list (AC-2, BP-150)", () => {
    assert.deepStrictEqual(Message.user("hi").content, [Content.text("hi")])
    assert.deepStrictEqual(Message.user(image).content, [image])
    assert.deepStrictEqual(Message.assistant(["a", image]).content, [Content.text("a"), image])
    assert.deepStrictEqual(Message.make("user", null).content, [])
  })

  it("joins its text and lists its media, without thinking (BP-150)", () => {
    const message = Message.assistant(["a", Content.thinking("hm"), image, "b", Content.data({ n: 1 })])
    assert.strictEqual(Message.text(message), 'a[image:media_1]b{"n":1}')
    assert.deepStrictEqual(Message.media(message), [image])
    assert.isTrue(Message.hasMedia(message))
    assert.isFalse(Message.hasMedia(Message.user("x")))
  })

  it("is deeply frozen, and equal by value", () => {
    const make = () =>
      Message.make("tool", [Content.toolResult("c", "ok")], { name: "n", metadata: { deep: { a: 1 } } })
    const message = make()
    assert.isTrue(Equal.equals(message, make()))
    assert.isTrue(Object.isFrozen(message) && Object.isFrozen(message.content))
    assert.isTrue(Object.isFrozen(message.metadata) && Object.isFrozen(message.metadata?.["deep"]))
  })

  it("decodes and encodes its wire form, contents of unknown types included (CP-7)", () => {
    const wire = {
      role: "assistant",
      content: [
        { type: "text", text: "a" },
        { type: "later", nothing: null }
      ],
      name: "n",
      metadata: { keepMe: 1, and_me: null }
    }
    const message = Result.getOrThrow(Message.decode(wire))
    assert.deepStrictEqual(Message.encode(message), wire)
    assert.deepStrictEqual<unknown>(Schema.encodeSync(Message.Message)(message), wire)
    assert.isTrue(Object.isFrozen(message))
    assert.deepStrictEqual(Result.getOrThrow(Message.decode({ role: "user", content: "hi" })), Message.user("hi"))
    assert.deepStrictEqual(Result.getOrThrow(Message.decode({ role: "user", content: null })).content, [])
  })

  it("is recognized by a known role and a list of parts (BP-150)", () => {
    assert.isTrue(Message.isMessage({ role: "tool", content: [] }))
    for (const other of [{ role: "nobody", content: [] }, { role: "user", content: "hi" }, { content: [] }, null]) {
      assert.isFalse(Message.isMessage(other))
    }
  })

  it("reports the path of an invalid part (CP-2)", () => {
    const faults: ReadonlyArray<readonly [unknown, string]> = [
      [{ role: "robot", content: "x" }, "/role"],
      [{ role: "user" }, "/content"],
      [{ role: "user", content: [{ type: "text", text: "" }, { type: "text" }] }, "/content/1/text"],
      [{ role: "user", content: "x", name: 1 }, "/name"],
      ["hi", ""]
    ]
    for (const [wire, path] of faults) {
      const result = Message.decode(wire)
      assert.strictEqual(Result.isFailure(result) ? result.failure.path : "no fault", path, JSON.stringify(wire))
    }
  })
})
