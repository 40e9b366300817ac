/**
 * Reads the type and the size of an image from its first bytes: PNG, JPEG, GIF and WebP.
 *
 * Nothing is decoded, so an image of any size costs the same.
 */

/** The size of an image in pixels. */
export interface ImageSize {
  readonly width: number
  readonly height: number
}

/** Returns the media type. Undefined for other formats. */
export const imageType = (bytes: Uint8Array): string | undefined => {
  if (startsWith(bytes, 0, "\x89PNG\r\n\x1a\n")) return "image/png"
  if (startsWith(bytes, 0, "\xff\xd8\xff")) return "image/jpeg"
  if (startsWith(bytes, 0, "GIF87a") || startsWith(bytes, 0, "GIF89a")) return "image/gif"
  return startsWith(bytes, 0, "RIFF") && startsWith(bytes, 8, "WEBP") ? "image/webp" : undefined
}

/** Returns the size. Undefined for other formats, and for an image that is cut before its size. */
export const imageSize = (bytes: Uint8Array): ImageSize | undefined => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  switch (imageType(bytes)) {
    case "image/png":
      return bytes.length < 24 ? undefined : { width: view.getUint32(16), height: view.getUint32(20) }
    case "image/gif":
      return bytes.length < 10 ? undefined : { width: view.getUint16(6, true), height: view.getUint16(8, true) }
    case "image/webp":
      return bytes.length < 30 ? undefined : webpSize(bytes, view)
    case "image/jpeg":
      return jpegSize(view)
    default:
      return undefined
  }
}

/** Returns whether these characters stand at an offset, one in each byte. */
export const startsWith = (bytes: Uint8Array, at: number, text: string): boolean => {
  for (let index = 0; index < text.length; index++) if (bytes[at + index] !== text.charCodeAt(index)) return false
  return true
}

const webpSize = (bytes: Uint8Array, view: DataView): ImageSize | undefined => {
  if (startsWith(bytes, 12, "VP8X")) {
    const small = (at: number) => (view.getUint16(at, true) | (view.getUint8(at + 2) << 16)) + 1
    return { width: small(24), height: small(27) }
  }
  if (startsWith(bytes, 12, "VP8L")) {
    const packed = view.getUint32(21, true)
    return { width: (packed & 0x3fff) + 1, height: ((packed >>> 14) & 0x3fff) + 1 }
  }
  if (!startsWith(bytes, 12, "VP8 ")) return undefined
  return { width: view.getUint16(26, true) & 0x3fff, height: view.getUint16(28, true) & 0x3fff }
}

/** The markers of JPEG before a size: frames of every kind of coding. */
const isFrame = (marker: number): boolean =>
  marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc

/** Walks over the segments of a JPEG to its frame. */
const jpegSize = (view: DataView): ImageSize | undefined => {
  let at = 2
  while (at + 9 <= view.byteLength) {
    if (view.getUint8(at) !== 0xff) return undefined
    const marker = view.getUint8(at + 1)
    if (isFrame(marker)) return { width: view.getUint16(at + 7), height: view.getUint16(at + 5) }
    // Fill bytes and markers without a segment.
    const isAlone = marker === 0xff || marker === 0x01 || (marker >= 0xd0 && marker <= 0xd8)
    at += marker === 0xff ? 1 : isAlone ? 2 : 2 + Math.max(2, view.getUint16(at + 2))
  }
  return undefined
}
