import { assert, describe, it } from "@effect/vitest"
import { imageSize, imageType } from "../../src/kit/imageHeader.ts"
import { gif, jpeg, png, webp } from "../support/images.ts"

const formats = { png, gif, jpeg, ...webp }

describe("the header of an image", () => {
  for (const [name, make] of Object.entries(formats)) {
    it(`says the size of ${name}`, () => {
      for (const [width, height] of [
        [1, 1],
        [640, 480],
        [8_001, 9],
        [3, 16_383]
      ] as const) {
        assert.deepStrictEqual(imageSize(make(width, height)), { width, height })
      }
    })

    it(`of ${name} that is cut anywhere says the size or nothing, and never fails`, () => {
      const bytes = make(640, 480)
      for (let length = 0; length < bytes.length; length++) {
        const size = imageSize(bytes.subarray(0, length))
        assert.isTrue(size === undefined || (size.width === 640 && size.height === 480), `${length} bytes`)
      }
    })
  }

  it("of another format says nothing", () => {
    for (const bytes of [new Uint8Array(), new Uint8Array([1, 2, 3]), new TextEncoder().encode("<svg/>")]) {
      assert.isUndefined(imageSize(bytes))
      assert.isUndefined(imageType(bytes))
    }
  })

  it("is read where it stands in a larger buffer", () => {
    const whole = new Uint8Array([9, 9, 9, ...png(5, 6)])
    assert.deepStrictEqual(imageSize(whole.subarray(3)), { width: 5, height: 6 })
  })
})
