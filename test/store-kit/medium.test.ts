import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Content, MediaStore, Message, RunStore } from "kernai"
import { admitMedia } from "../../src/store-kit/internal/admitMedia.ts"

const image = (size: number, fill: number) => Content.image({ data: new Uint8Array(size).fill(fill) })
const result = (...parts: ReadonlyArray<Content.Content>) => Message.make("tool", [Content.toolResult("c", parts)])

/** What of a content is inside, by its bytes, and what is in a store. */
const placesOf = (parts: ReadonlyArray<Content.Content>): ReadonlyArray<unknown> =>
  parts.map((part) => {
    if (part.type === "tool_result") return placesOf(part.content)
    if (!Content.isMedia(part)) return part.type
    return part.fileId === undefined ? (part.data?.byteLength ?? part.url) : "stored"
  })

describe("media of a message that a run stores", () => {
  it.effect(
    "are put into the media store above a size, also in results, while there is room for all of them (CP-11)",
    () =>
      Effect.gen(function* () {
        const store = yield* MediaStore.MediaStore.use((media) => media.run("r"))
        const messages = [
          Message.make("user", [Content.text("Look:"), image(5, 1), image(20, 2)]),
          result(Content.text("drawn"), image(30, 3), image(6, 4)),
          Message.make("user", [image(25, 5), image(26, 6)]),
          result(image(50, 7)),
          Message.make("user", [Content.image({ url: "https://x.test/a.png" })])
        ]
        const given = yield* admitMedia(messages, store, 100, 6)
        assert.deepStrictEqual(
          given.map(({ content }) => placesOf(content)),
          [["text", 5, "stored"], [["text", "stored", 6]], [25, 26], [["stored"]], ["https://x.test/a.png"]]
        )
        // What does not change stays the value it is: a provider may have encoded it already.
        assert.deepStrictEqual(
          given.map((message, at) => message === messages[at]),
          [false, false, true, false, true]
        )
        assert.strictEqual(yield* admitMedia(given, store, 100, 0), given)
      }).pipe(Effect.scoped, Effect.provide(MediaStore.layerMemory))
  )

  it.effect("stay inline when the media store refuses them", () =>
    Effect.gen(function* () {
      const store = yield* MediaStore.MediaStore.use((media) => media.run("r"))
      const refused = new RunStore.StoreError({ operation: "put", reason: "unavailable", detail: "the disk is full" })
      const messages = [result(Content.text("drawn"), image(30, 1))]
      const given = yield* admitMedia(messages, { ...store, admit: () => Effect.fail(refused) }, 100, 0)
      assert.strictEqual(given[0], messages[0])
    }).pipe(Effect.scoped, Effect.provide(MediaStore.layerMemory))
  )
})
