/**
 * Replaces what a detector finds by placeholders such as `[EMAIL_1]` before a model reads it, and puts it back into the
 * reply.
 *
 * Nothing is kept between calls: placeholders are numbered in the order of the messages of each request, so a request
 * of the same conversation has the same ones, in every process.
 */

import * as Effect from "effect/Effect"
import type { ModelCall, ModelStream } from "../../Middleware.ts"
import type { StreamPart } from "../../StreamPart.ts"
import type { Detector, Finding } from "../Detector.ts"
import { ofJson, ofMessage } from "./contentTexts.ts"
import { type Release, rewrite } from "./deltas.ts"

/** A finding in a message of a request. */
export interface Placed extends Finding {
  /** The index of the message. */
  readonly message: number
}

/** Hides the findings of a detector from a model, and shows them in its reply. */
export const mask =
  (detector: Detector) =>
  (call: ModelCall, next: (call: ModelCall) => ModelStream): ModelStream => {
    const placeholders = new Placeholders(call)
    const found: Array<Placed> = []
    const messages = call.request.messages.map((message, index) =>
      ofMessage(message, (text) =>
        replaceFound(text, detector.find(text), (finding) => {
          found.push({ ...finding, message: index })
          return placeholders.of(finding.kind, text.slice(finding.start, finding.end))
        })
      )
    )
    if (found.length === 0) return next(call)
    const fresh = call.request.messages.findLastIndex(({ role }) => role === "assistant")
    const report = reportOf(found.filter(({ message }) => message > fresh))
    return rewrite(next({ ...call, request: { ...call.request, messages } }), unmask(placeholders), (part) => {
      if (part.type === "finish") return [...report, part]
      return part.type === "tool-call" ? [{ ...part, params: shown(part.params, placeholders) }] : [part]
    })
  }

/** Replaces each finding in a text. */
export const replaceFound = (
  text: string,
  findings: ReadonlyArray<Finding>,
  replace: (finding: Finding) => string
): string => {
  let out = ""
  let at = 0
  for (const finding of findings) {
    out += text.slice(at, finding.start) + replace(finding)
    at = finding.end
  }
  return at === 0 ? text : out + text.slice(at)
}

const unmask =
  (placeholders: Placeholders): Release =>
  ({ isEnd, text, type }) =>
    Effect.sync(() => {
      const begun = isEnd ? -1 : text.search(/\[[A-Z_]{0,40}\d{0,9}$/)
      const length = begun < 0 ? text.length : begun
      const isJson = type === "tool-params-delta"
      return [length, placeholders.resolve(text.slice(0, length), isJson)]
    })

const shown = (params: unknown, placeholders: Placeholders): unknown => {
  if (typeof params === "string") return placeholders.resolve(params, true)
  return isJson(params) ? ofJson(params, (text) => placeholders.resolve(text, false)) : params
}

// A provider decodes the parameters of a call from JSON text.
const isJson = (value: unknown): value is Parameters<typeof ofJson>[0] => value !== undefined

const reportOf = (found: ReadonlyArray<Placed>): ReadonlyArray<StreamPart> =>
  found.length === 0
    ? []
    : [
        {
          type: "response-metadata",
          metadata: { guard: { action: "masked", findings: found.slice(0, 1_000).map((finding) => ({ ...finding })) } }
        }
      ]

/** The placeholders of one request. */
class Placeholders {
  readonly #texts = new Map<string, string>()
  readonly #names = new Map<string, string>()
  readonly #counts = new Map<string, number>()
  /** Placeholders that the messages hold already, which stand for themselves. */
  readonly #taken: ReadonlySet<string>

  constructor({ request }: ModelCall) {
    const taken = new Set<string>()
    for (const message of request.messages) {
      ofMessage(message, (text) => {
        for (const [name] of text.matchAll(form)) taken.add(name)
        return text
      })
    }
    this.#taken = taken
  }

  /** Returns the placeholder of a text, the same one each time. */
  of(kind: string, text: string): string {
    const key = `${kind} ${text}`
    const known = this.#names.get(key)
    if (known !== undefined) return known
    const word = kind.toUpperCase().replace(/[^A-Z]/g, "_")
    let count = this.#counts.get(word) ?? 0
    let name: string
    do name = `[${word}_${++count}]`
    while (this.#taken.has(name))
    this.#counts.set(word, count)
    this.#names.set(key, name)
    this.#texts.set(name, text)
    return name
  }

  /** Replaces placeholders by their texts. */
  resolve(text: string, isJson: boolean): string {
    return text.replace(form, (name) => {
      const original = this.#texts.get(name)
      if (original === undefined) return name
      return isJson ? JSON.stringify(original).slice(1, -1) : original
    })
  }
}

const form = /\[[A-Z_]{1,40}_\d{1,9}\]/g
