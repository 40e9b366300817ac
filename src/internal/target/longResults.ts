/**
 * Cuts results that are too long for a model.
 *
 * The whole text is kept among the run's media. A model that has the skill to read it gets its id. Cutting never splits a
 * character.
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Content } from "../../Content.ts"
import * as Contents from "../../Content.ts"
import * as Media from "../../Media.ts"
import { block, name } from "./readResult.ts"
import type { Run } from "../run/run.ts"
import { refusalOf } from "../reply/permissions.ts"

/** Facts about a result that was cut. */
export interface Truncated {
  readonly truncated: true
  /** Bytes of the whole text. */
  readonly bytes: number
  /** Media id of the whole text. Absent when there was no room for it. */
  readonly full_result?: string
}

/** Is the text of contents longer than `limit` bytes? Media do not count. */
export const isLong = (content: ReadonlyArray<Content>, limit: number): boolean => {
  let length = 0
  for (const part of content) length += said(part).length
  // A UTF-16 unit is at most three bytes: most results need no measuring.
  return length * 3 > limit && encoder.encode(textOf(content)).length > limit
}

/** Cuts texts at the limit and keeps the whole. */
export const shorten = Effect.fnUntraced(function* (run: Run, content: ReadonlyArray<Content>) {
  const whole = encoder.encode(textOf(content))
  const stored = yield* Effect.option(run.media.put(Media.fromBytes(whole, "text/plain")))
  const reader = run.skills.find(name)
  const mayRead = Option.isSome(reader) && refusalOf(run, reader.value) === undefined
  const limit = run.limits.resultBytes
  const truncated: Truncated = {
    truncated: true,
    bytes: whole.length,
    ...(Option.isSome(stored) ? { full_result: stored.value.id } : {})
  }
  if (Option.isNone(stored) || !mayRead) return { content: cut(content, limit), truncated }
  const shown = Math.max(0, limit - room)
  const pieces = cut(content, shown)
  const read = encoder.encode(textOf(pieces)).length
  const hint = Contents.text(`\n${block(stored.value.id, read, whole.length)}`)
  return { content: [...pieces, hint], truncated }
})

const encoder = new TextEncoder()

// Bytes kept free for the hint.
const room = 200

const textOf = (content: ReadonlyArray<Content>): string => {
  let text = ""
  for (const part of content) text += said(part)
  return text
}

const said = (part: Content): string =>
  part.type === "text" ? part.text : Contents.isMedia(part) ? "" : Contents.toText(part)

const cut = (content: ReadonlyArray<Content>, limit: number): ReadonlyArray<Content> => {
  const buffer = new Uint8Array(limit)
  let left = limit
  return content.map((part): Content => {
    if (Contents.isMedia(part)) return part
    const text = said(part)
    const { read, written } = encoder.encodeInto(text, buffer.subarray(0, left))
    left -= written
    // A part of any other content is a text.
    return read === text.length ? part : Contents.text(text.slice(0, read))
  })
}
