/**
 * Keeps the images of a request within what its vendor accepts: their number, their sides and their bytes.
 *
 * An image that the vendor would refuse is replaced by a text that says why. The newest images stay.
 */

import type { Content } from "../../Content.ts"
import { imageSize, imageType } from "../../kit/imageHeader.ts"
import { perObject } from "../../kit/perObject.ts"
import type { ImageLimits } from "../../kit/vendorRules.ts"
import type { Message } from "../../Message.ts"

/** The images that one message may show. */
export interface ImageShare {
  /** The longest side of an image in pixels. */
  readonly side: number
  /** How many of its first images are left out. */
  readonly leftOut: number
}

/** Returns the share of each message. Undefined if the request has no images, or its vendor no limits. */
export const imageShares = (
  messages: ReadonlyArray<Message>,
  limits: ImageLimits | undefined
): ReadonlyArray<ImageShare> | undefined => {
  if (limits === undefined) return undefined
  const counts = messages.map(imagesIn)
  const count = counts.reduce((sum, images) => sum + images, 0)
  if (count === 0) return undefined
  const { most = Infinity, side = Infinity, sideOfMany } = limits
  const allowed = sideOfMany !== undefined && count > sideOfMany.above ? sideOfMany.side : side
  let excess = Math.max(0, count - most)
  return counts.map((images) => {
    const leftOut = Math.min(images, excess)
    excess -= leftOut
    return { side: allowed, leftOut }
  })
}

const imagesIn = perObject(({ content }: Message): number => countImages(content))

const countImages = (content: ReadonlyArray<Content>): number =>
  content.reduce(
    (sum, part) => sum + (part.type === "tool_result" ? countImages(part.content) : part.type === "image" ? 1 : 0),
    0
  )

/** Judges the images of one message, in order. */
export interface ImageGate {
  /** Returns why the vendor refuses the next image. `data` is absent for an image at an address. */
  readonly refusal: (data: Uint8Array | undefined) => string | undefined
}

export const gateOf = (limits: ImageLimits | undefined, share: ImageShare | undefined): ImageGate | undefined => {
  if (limits === undefined || share === undefined) return undefined
  let leftOut = 0
  return {
    refusal: (data) => {
      if (leftOut < share.leftOut) {
        leftOut++
        return `there are more than ${limits.most} images`
      }
      return data === undefined ? undefined : refusalOf(data, limits, share)
    }
  }
}

const refusalOf = (data: Uint8Array, { encodedBytes }: ImageLimits, { side }: ImageShare): string | undefined => {
  if (encodedBytes !== undefined && Math.ceil(data.length / 3) * 4 > encodedBytes) {
    return `larger than ${encodedBytes} bytes as base64`
  }
  const size = imageSize(data)
  // Bytes of an unknown format are the vendor's to judge.
  if (size === undefined) return imageType(data) === undefined ? undefined : "its size cannot be read"
  return Math.max(size.width, size.height) > side
    ? `${size.width} × ${size.height} pixels, ${side} are allowed`
    : undefined
}
