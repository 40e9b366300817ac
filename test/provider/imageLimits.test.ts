/** Images stay within what a vendor accepts: those it would refuse become a text that says why. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Content } from "kernai"
import { RequestRules } from "kernai/testing"
import { bodyOf, message, request, tool, vision } from "../support/provider.ts"
import { jpeg, png } from "../support/images.ts"

const image = (data: Uint8Array) => Content.image({ data, mediaType: "image/png" })
const small = image(png(10, 10))

const send = (name: string, ...messages: ReadonlyArray<ReturnType<typeof message>>) =>
  bodyOf(name, request({ model: vision, tools: [tool], messages }))

const imagesIn = (body: unknown): number =>
  JSON.stringify(body).split(/"type":"(?:image|image_url|input_image)"/).length - 1

describe("an image for Anthropic", () => {
  it.effect("is sent at 8,000 pixels, and replaced by a text with its size above", () =>
    Effect.gen(function* () {
      const fits = yield* send("anthropic", message("user", image(png(8_000, 10))))
      assert.strictEqual(imagesIn(fits), 1)
      for (const data of [png(8_001, 10), png(10, 8_001), jpeg(9_000, 20)]) {
        const body = yield* send("anthropic", message("user", image(data)))
        assert.strictEqual(imagesIn(body), 0)
        assert.match(JSON.stringify(body), /\[image unavailable: image\/png, \d+ × \d+ pixels, 8000 are allowed\]/)
      }
    })
  )

  it.effect("may have 2,000 pixels only once there are more than 20, also in results and earlier messages", () =>
    Effect.gen(function* () {
      const large = message("user", image(png(2_001, 10)))
      const call = message("assistant", Content.toolUse("c", "add", {}))
      const shown = (count: number) => message("tool", Content.toolResult("c", Array(count).fill(small)))
      const few = yield* send("anthropic", large, call, shown(19))
      assert.strictEqual(imagesIn(few), 20)
      const many = yield* send("anthropic", large, call, shown(20))
      assert.strictEqual(imagesIn(many), 20)
      assert.include(JSON.stringify(many), "2001 × 10 pixels, 2000 are allowed")
      assert.deepStrictEqual(RequestRules.check("anthropic", many), [])
    })
  )

  it.effect("is left out when 100 newer ones follow", () =>
    Effect.gen(function* () {
      const body = yield* send(
        "anthropic",
        message("user", Content.text("old"), image(png(1, 1)), image(png(2, 2))),
        message("user", ...Array(99).fill(small))
      )
      assert.strictEqual(imagesIn(body), 100)
      assert.include(JSON.stringify(body), "there are more than 100 images")
      assert.deepStrictEqual(RequestRules.check("anthropic", body), [])
    })
  )

  it.effect("is replaced when its bytes are too many, or its header is cut", () =>
    Effect.gen(function* () {
      const heavy = new Uint8Array(7_900_000)
      heavy.set(png(10, 10))
      const body = yield* send("anthropic", message("user", image(heavy), image(png(10, 10).subarray(0, 20))))
      assert.strictEqual(imagesIn(body), 0)
      assert.include(JSON.stringify(body), "larger than 10485760 bytes as base64")
      assert.include(JSON.stringify(body), "its size cannot be read")
    })
  )
})

describe("an image for OpenAI", () => {
  for (const name of ["openai", "openai-responses"]) {
    it.effect(`over ${name} is left out when 500 newer ones follow, and may have any size`, () =>
      Effect.gen(function* () {
        const body = yield* send(name, message("user", ...Array(501).fill(image(png(20_000, 1)))))
        assert.strictEqual(imagesIn(body), 500)
      })
    )
  }
})
