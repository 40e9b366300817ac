/** Adds the passages of documents that a reply names to it, as sources. */

import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import * as Bounds from "../../kit/bounds.ts"
import { parseJson } from "../../kit/json.ts"
import * as Messages from "../../Message.ts"
import type { Middleware } from "../../Middleware.ts"
import type { StreamPart } from "../../StreamPart.ts"

/** Headings of passages by their places. */
type Places = ReadonlyMap<string, string>

/** The middleware that adds a source for each place that a reply names, if the request has its passage. */
export const citing: Middleware = {
  callModel: (call, next) =>
    Stream.suspend(() => {
      const places = placesIn(call.request.messages)
      return places.size === 0 ? next(call) : cite(next(call), places)
    })
}

const cite = <E, R>(reply: Stream.Stream<StreamPart, E, R>, places: Places): Stream.Stream<StreamPart, E, R> =>
  Stream.mapAccum(
    reply,
    () => "",
    (text, part) => {
      if (part.type === "text-delta") return [text + part.delta, [part]] as const
      return [text, part.type === "finish" ? [...sourcesOf(text, places), part] : [part]] as const
    }
  )

const sourcesOf = (text: string, places: Places): ReadonlyArray<StreamPart> =>
  [...places].flatMap(([place, heading], index): ReadonlyArray<StreamPart> => {
    if (!isNamed(place, text)) return []
    const title = heading === "" ? place : `${place} ${heading}`
    return [{ type: "source", sourceType: "document", id: `passage-${index}`, mediaType: "text/plain", title }]
  })

/** Returns whether a text names a place, and not one that begins or ends with it, such as `a.md:1-20` for `a.md:1-2`. */
const isNamed = (place: string, text: string): boolean => {
  for (let at = text.indexOf(place); at !== -1; at = text.indexOf(place, at + 1)) {
    const isWhole = !/[\p{L}\p{N}_./\\-]$/u.test(text.slice(Math.max(0, at - 2), at))
    if (isWhole && !/^-?\d/.test(text.slice(at + place.length, at + place.length + 2))) return true
  }
  return false
}

// ---------------------------------------------------------------- the request

/** Returns the places of the passages in a section of the prompt and in the results of the skill. */
const placesIn = (messages: ReadonlyArray<Messages.Message>): Places => {
  const found = new Map<string, string>()
  for (const message of messages) {
    if (message.role === "assistant") continue
    const text = Messages.text(message)
    if (message.role === "system") {
      for (const [, place = "", heading = ""] of text.matchAll(inSection)) found.set(plain(place), plain(heading))
    } else {
      for (const [fields] of text.matchAll(inResult)) {
        const read = Result.getOrUndefined(parseJson(`{${fields}}`, Bounds.jsonDepth))
        const { heading, place } = { heading: "", place: "", ...(typeof read === "object" ? read : {}) }
        found.set(place, heading)
      }
    }
  }
  return found
}

const inSection = /<passage place="([^"]*)" heading="([^"]*)">/g

// In a string of JSON its quotes are escaped, so no content of a passage looks like this.
const inResult = /(?<!\\)"place":"(?:[^"\\]|\\.)*","heading":"(?:[^"\\]|\\.)*"/g

/** Reverses `entities`. */
const plain = (text: string): string =>
  text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&quot;", '"').replaceAll("&amp;", "&")
