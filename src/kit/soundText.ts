/**
 * Text and JSON without what strict readers refuse: half of a surrogate pair, and NUL.
 *
 * A text cut in the middle of a character has half of a pair at its end. Readers of JSON refuse it, and templates and
 * databases behind them refuse NUL. Each becomes U+FFFD, the replacement character. Sound values are returned as they
 * are, without a copy.
 */

import type { Json } from "./json.ts"
import * as Snapshot from "./snapshot.ts"

/** Returns a text without halves of surrogate pairs and without NUL. */
export const soundText = (text: string): string => {
  const whole = text.isWellFormed() ? text : text.toWellFormed()
  return whole.includes("\0") ? whole.replaceAll("\0", "\ufffd") : whole
}

/** Returns JSON whose texts and keys are sound. */
export const soundJson = (value: Json): Json => {
  if (typeof value === "string") return soundText(value)
  if (typeof value !== "object" || value === null) return value
  if (isList(value)) {
    const items = value.map(soundJson)
    return items.every((item, index) => item === value[index]) ? value : items
  }
  return soundObject(value)
}

/** Returns a JSON object whose texts and keys are sound. */
export const soundObject = <A extends { readonly [key: string]: Json }>(value: A): A | { [key: string]: Json } => {
  const copy: { [key: string]: Json } = {}
  let isSame = true
  for (const [key, inner] of Object.entries(value)) {
    const [soundKey, sound] = [soundText(key), soundJson(inner)]
    isSame &&= soundKey === key && sound === inner
    Snapshot.define(copy, soundKey, sound)
  }
  return isSame ? value : copy
}

/**
 * Returns JSON text without halves of surrogate pairs. The text must come from `JSON.stringify`, which writes half of a
 * pair as an escape and a whole pair as it is, so most texts need no more than one search.
 */
export const wellFormedJson = (json: string): string =>
  json.includes("\\ud") ? json.replace(/\\\\|\\ud[89a-f][0-9a-f]{2}/g, replaced) : json

/** Like `wellFormedJson`, also without NUL. */
export const soundJsonText = (json: string): string =>
  json.includes("\\u0000") ? wellFormedJson(json.replace(/\\\\|\\u0000/g, replaced)) : wellFormedJson(json)

// An escaped backslash is matched first, so that what follows it is not taken for an escape.
const replaced = (escape: string): string => (escape === "\\\\" ? escape : "\ufffd")

const isList = (value: Json): value is ReadonlyArray<Json> => Array.isArray(value)
