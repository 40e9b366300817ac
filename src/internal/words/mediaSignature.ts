/**
 * Recognizes the type of media by their first bytes.
 *
 * Only types whose bytes are unmistakable are recognized. A name or a vendor may say more than the bytes do, such as a
 * document inside of an archive: a declared type counts unless the bytes contradict it.
 */

interface Signature {
  readonly type: string
  /** Other names of the type, and types whose files begin in the same way. */
  readonly also?: RegExp
  readonly matches: (bytes: Uint8Array) => boolean
}

/** Returns the declared type of some bytes, or the one that the bytes have when they contradict it. */
export const typeOf = (bytes: Uint8Array, declared: string): string => {
  const found = signatures.find(({ matches }) => matches(bytes))
  if (found === undefined) return declared
  const name = declared.split(";", 1)[0]?.trim().toLowerCase() ?? ""
  if (name === unknown) return found.type
  return name === found.type || found.also?.test(name) === true ? declared : found.type
}

const unknown = "application/octet-stream"

const at = (offset: number, text: string) => (bytes: Uint8Array) =>
  bytes.length >= offset + text.length &&
  Array.from(text).every((char, index) => bytes[offset + index] === char.charCodeAt(0))

const all =
  (...tests: ReadonlyArray<(bytes: Uint8Array) => boolean>) =>
  (bytes: Uint8Array) =>
    tests.every((test) => test(bytes))

const any =
  (...tests: ReadonlyArray<(bytes: Uint8Array) => boolean>) =>
  (bytes: Uint8Array) =>
    tests.some((test) => test(bytes))

const signatures: ReadonlyArray<Signature> = [
  { type: "image/png", also: /^image\/(x-png|apng|vnd\.mozilla\.apng)$/, matches: at(0, "\x89PNG\r\n\x1a\n") },
  { type: "image/jpeg", also: /^image\/(jpg|pjpeg)$/, matches: at(0, "\xff\xd8\xff") },
  { type: "image/gif", matches: any(at(0, "GIF87a"), at(0, "GIF89a")) },
  { type: "image/webp", matches: all(at(0, "RIFF"), at(8, "WEBP")) },
  { type: "image/tiff", also: /^image\//, matches: any(at(0, "II*\0"), at(0, "MM\0*")) },
  { type: "image/avif", matches: all(at(4, "ftyp"), any(at(8, "avif"), at(8, "avis"))) },
  {
    type: "image/heic",
    also: /^image\/hei[cf]/,
    matches: all(at(4, "ftyp"), any(at(8, "heic"), at(8, "heix"), at(8, "mif1")))
  },
  { type: "audio/wav", also: /^audio\/(x-wav|wave|vnd\.wave|x-pn-wav)$/, matches: all(at(0, "RIFF"), at(8, "WAVE")) },
  { type: "video/x-msvideo", also: /^video\//, matches: all(at(0, "RIFF"), at(8, "AVI ")) },
  { type: "audio/mpeg", also: /^audio\//, matches: at(0, "ID3") },
  { type: "audio/flac", also: /^audio\/x-flac$/, matches: at(0, "fLaC") },
  { type: "audio/ogg", also: /^(audio|video|application)\//, matches: at(0, "OggS") },
  { type: "audio/mp4", also: /^(audio|video)\//, matches: all(at(4, "ftyp"), at(8, "M4A")) },
  { type: "video/quicktime", also: /^video\//, matches: all(at(4, "ftyp"), at(8, "qt  ")) },
  { type: "video/mp4", also: /^(audio|video)\/|^image\/hei|^image\/avif/, matches: at(4, "ftyp") },
  { type: "video/webm", also: /^(audio|video)\//, matches: at(0, "\x1aE\xdf\xa3") },
  { type: "application/pdf", also: /^application\/(x-pdf|postscript|illustrator)$/, matches: at(0, "%PDF-") },
  { type: "application/gzip", also: /^application\/|\+gzip$/, matches: at(0, "\x1f\x8b\x08") },
  { type: "application/zip", also: /^(application|model)\/|\+zip$/, matches: at(0, "PK\x03\x04") }
]
