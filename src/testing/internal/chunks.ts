/** Cuts a body into pieces, as a network might deliver it. */

/** How to cut. */
export type Cut = "whole" | "frames" | number | ReadonlyArray<number> | { readonly seed: number }

/** Returns the pieces of a body as bytes. Joined, they are the body. */
export const pieces = (body: string, frames: ReadonlyArray<string>, cut: Cut): ReadonlyArray<Uint8Array> => {
  const bytes = encoder.encode(body)
  if (bytes.length === 0) return []
  if (cut === "whole") return [bytes]
  if (cut === "frames") return atFrames(body, frames)
  if (typeof cut === "number") return bySize(bytes, () => cut)
  if ("seed" in cut) return bySize(bytes, drawn(cut.seed))
  return bySize(bytes, (index) => cut[index] ?? bytes.length)
}

const encoder = new TextEncoder()

// A frame extends to the beginning of the next one.
const atFrames = (body: string, frames: ReadonlyArray<string>): ReadonlyArray<Uint8Array> => {
  const cuts: Array<number> = []
  let from = 0
  for (const frame of frames) {
    const at = body.indexOf(frame, from)
    if (at === -1) continue
    if (at > 0) cuts.push(at)
    from = at + frame.length
  }
  const found: Array<Uint8Array> = []
  let start = 0
  for (const end of [...cuts, body.length]) {
    if (end > start) found.push(encoder.encode(body.slice(start, end)))
    start = end
  }
  return found
}

const bySize = (bytes: Uint8Array, sizeOf: (index: number) => number): ReadonlyArray<Uint8Array> => {
  const found: Array<Uint8Array> = []
  for (let from = 0, index = 0; from < bytes.length; index++) {
    const size = Math.max(1, sizeOf(index))
    found.push(bytes.subarray(from, from + size))
    from += size
  }
  return found
}

// Mostly small pieces, occasionally a large one. The same seed gives the same cuts.
const drawn = (seed: number) => {
  let state = (seed >>> 0) + 1
  return (): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    const draw = state / 2 ** 32
    return 1 + Math.floor(draw < 0.8 ? draw * 40 : draw * 2000)
  }
}
