/**
 * Splits the text of a reply into JSON values, however it arrives.
 *
 * A reply is a stream of server-sent events, JSON lines, or one JSON document. Its first character shows which, so a
 * whole document sent in response to a streaming request is also accepted. The work is linear and bounded: each event
 * or line by `frameLength`, a document by `Limits.fetchedBytes`.
 */

import * as Sse from "effect/encoding/Sse"
import * as Bounds from "../../kit/bounds.ts"
import type { Limits } from "../../Limits.ts"
import { type Fault, limitFault } from "./providerFault.ts"
import { type Fields, isFields, parse } from "./readFields.ts"

/** The stream format of a vendor. */
export type Framing = "sse" | "ndjson"

/** Reads the values of one reply. A returned fault ends the call. */
export interface Decoder {
  /** One event or line. */
  readonly event: (value: Fields) => Fault | undefined
  /** An event named `error`. */
  readonly failed: (value: Fields) => Fault | undefined
  /** A reply that arrived as one document. */
  readonly whole: (value: Fields) => Fault | undefined
  /** The end of the reply: by the vendor's end mark, or because the body ended. */
  readonly end: (isMarked: boolean) => void
  /** Returns true once the reason of the end has arrived: the reply is whole, and only its usage may be missing. */
  readonly hasEnded: () => boolean
}

/** Splits the text of a body that arrives in pieces. */
interface Frames {
  readonly push: (text: string) => Fault | undefined
  readonly end: () => Fault | undefined
}

/** Reads frames into `decoder`. */
export const make = (framing: Framing, decoder: Decoder, limits: Limits): Frames => {
  let frames: Frames | undefined
  let skipped = 0
  return {
    push: (text) => {
      if (frames !== undefined) return frames.push(text)
      const start = text.search(spoken)
      if (start === -1) {
        skipped += text.length
        return skipped > Bounds.frameLength ? limitFault("frameLength", Bounds.frameLength) : undefined
      }
      const first = text[start]
      if (first === "<") return { reason: "invalid_response", note: "an HTML page instead of a reply" }
      frames =
        framing === "ndjson"
          ? lines(decoder, limits)
          : first === "{" || first === "["
            ? whole(decoder, limits)
            : events(decoder)
      return frames.push(text.slice(start))
    },
    end: () => {
      if (frames === undefined) return { reason: "incomplete", note: "the reply is empty" }
      return frames.end()
    }
  }
}

// White space before a reply is ignored.
const spoken = /[^ \t\r\n\uFEFF]/

const events = (decoder: Decoder): Frames => {
  let fault: Fault | undefined
  let isEnding = false
  const trailer = new Trailer()
  const parser = Sse.makeParser(
    (event) => {
      if (fault !== undefined || event._tag === "Retry") return
      const data = event.data.trim()
      if (data === "") return
      if (data === "[DONE]") return decoder.end(true)
      fault = event.event === "error" ? failure(data, decoder) : read(data, isEnding, decoder)
    },
    { maxEventSize: Bounds.frameLength }
  )
  const push = (text: string): Fault | undefined => {
    trailer.push(text)
    return parser.feed(text) === undefined ? fault : limitFault("frameLength", Bounds.frameLength)
  }
  return {
    push,
    end: () => {
      isEnding = true
      const error = trailer.error()
      // The blank line after the last event may be missing.
      return push("\n\n") ?? (error === undefined ? undefined : decoder.failed(error))
    }
  }
}

/** An error document among the events, which some vendors send before they end a stream. */
class Trailer {
  #text = ""
  #isLineStart = false

  push(text: string): void {
    if (this.#text !== "") this.#text = this.#text.length > mostOfTrailer ? "" : this.#text + text
    else {
      const lines = this.#isLineStart ? `\n${text}` : text
      const at = lines.search(/[\r\n][{[]/)
      if (at !== -1) this.#text = lines.slice(at + 1)
    }
    if (text !== "") this.#isLineStart = /[\r\n]$/.test(text)
  }

  error(): Fields | undefined {
    const value = parse(this.#text)
    const first: unknown = Array.isArray(value) ? value[0] : value
    return isFields(first) && isFields(first["error"]) ? first : undefined
  }
}

const mostOfTrailer = 64 * 1024

const lines = (decoder: Decoder, limits: Limits): Frames => {
  let document: Frames | undefined
  let isFirst = true
  let pending: Array<string> = []
  let pendingLength = 0
  const line = (text: string, isEnding: boolean): Fault | undefined =>
    text.trim() === "" ? undefined : read(text, isEnding, decoder)
  return {
    push: (text) => {
      if (document !== undefined) return document.push(text)
      let from = 0
      for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", from)) {
        let found = text.slice(from, at)
        if (pending.length > 0) {
          pending.push(found)
          found = pending.join("")
          pending = []
          pendingLength = 0
        }
        if (isFirst && found.trim() === "{") {
          // One document over several lines.
          document = whole(decoder, limits)
          return document.push(`{${text.slice(at)}`)
        }
        isFirst = false
        const fault = line(found, false)
        if (fault !== undefined) return fault
        from = at + 1
      }
      if (from < text.length) {
        pending.push(text.slice(from))
        pendingLength += text.length - from
      }
      return pendingLength > Bounds.frameLength ? limitFault("frameLength", Bounds.frameLength) : undefined
    },
    end: () => (document === undefined ? line(pending.join(""), true) : document.end())
  }
}

const whole = (decoder: Decoder, limits: Limits): Frames => {
  const pieces: Array<string> = []
  let length = 0
  return {
    push: (text) => {
      pieces.push(text)
      length += text.length
      return length > limits.fetchedBytes ? limitFault("fetchedBytes", limits.fetchedBytes) : undefined
    },
    end: () => {
      const source = pieces.join("")
      return source.startsWith("[") ? readList(source, decoder) : read(source, true, decoder, decoder.whole)
    }
  }
}

// Reads events in one list, which Google sends if the request does not ask for server-sent events.
const readList = (source: string, decoder: Decoder): Fault | undefined => {
  const values = parse(source)
  if (!Array.isArray(values)) return { reason: "incomplete" }
  for (const value of values) {
    const fault = isFields(value) ? decoder.event(value) : unreadable
    if (fault !== undefined) return fault
  }
  return undefined
}

// Treats an event named `error` as an error, whatever its content.
const failure = (source: string, decoder: Decoder): Fault | undefined => {
  const value = parse(source)
  return decoder.failed(isFields(value) ? value : {})
}

// Text that is not JSON means at the end of a body that the reply was cut, and behind the end of a reply nothing.
const read = (
  source: string,
  isEnding: boolean,
  decoder: Decoder,
  use: (value: Fields) => Fault | undefined = decoder.event
): Fault | undefined => {
  const value = parse(source)
  if (isFields(value)) return use(value)
  if (decoder.hasEnded()) return undefined
  return value === undefined && isEnding ? { reason: "incomplete" } : unreadable
}

const unreadable: Fault = { reason: "invalid_response", note: "not a JSON object" }
