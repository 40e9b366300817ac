/** The first bytes of images and PDF files of a given size. Nothing follows them. */

const text = (value: string): ReadonlyArray<number> => Array.from(value, (character) => character.charCodeAt(0))
const big = (value: number, bytes: number): ReadonlyArray<number> =>
  Array.from({ length: bytes }, (_, at) => (value >>> (8 * (bytes - 1 - at))) & 0xff)
const little = (value: number, bytes: number): ReadonlyArray<number> => big(value, bytes).toReversed()
const padded = (bytes: ReadonlyArray<number>): Uint8Array => new Uint8Array([...bytes, ...Array(64).fill(0)])

export const png = (width: number, height: number): Uint8Array =>
  padded([...text("\x89PNG\r\n\x1a\n"), ...big(13, 4), ...text("IHDR"), ...big(width, 4), ...big(height, 4)])

export const gif = (width: number, height: number): Uint8Array =>
  padded([...text("GIF89a"), ...little(width, 2), ...little(height, 2)])

export const jpeg = (width: number, height: number): Uint8Array =>
  padded(
    [
      [0xff, 0xd8],
      // A segment with a picture inside, whose own frame must not be read.
      [0xff, 0xe1, ...big(12, 2), 0xff, 0xc0, 0, 17, 8, 0, 1, 0, 1, 0],
      [0xff, 0xff, 0xc2, ...big(17, 2), 8],
      big(height, 2),
      big(width, 2)
    ].flat()
  )

const riff = (kind: string, ...rest: ReadonlyArray<number>): Uint8Array =>
  padded([...text("RIFF"), 0, 0, 0, 0, ...text(`WEBP${kind}`), 0, 0, 0, 0, ...rest])

export const webp = {
  lossy: (width: number, height: number) =>
    riff("VP8 ", 0, 0, 0, 0x9d, 0x01, 0x2a, ...little(width, 2), ...little(height, 2)),
  lossless: (width: number, height: number) => riff("VP8L", 0x2f, ...little((width - 1) | ((height - 1) << 14), 4)),
  extended: (width: number, height: number) =>
    riff("VP8X", 0, 0, 0, 0, ...little(width - 1, 3), ...little(height - 1, 3))
}

/** The beginning of a PDF file with this number of pages. The rest of its bytes are zero. */
export const pdf = (pages: number, bytes = 256): Uint8Array => {
  const file = new Uint8Array(bytes)
  file.set(text(`%PDF-1.7\n1 0 obj << /Kids [2 0 R] /Count ${pages} /Type /Pages >> endobj`))
  return file
}
