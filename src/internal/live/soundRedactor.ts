/**
 * A redactor of a host that always returns a text.
 */

import type { Redactor } from "../../Redaction.ts"
import { attempt } from "../base/foreignCode.ts"

/** A redactor that always returns a text. One that cannot withholds the whole. */
export const soundRedactor = (redactor: Redactor | undefined): Redactor | undefined => {
  if (redactor === undefined) return undefined
  let sound = soundRedactors.get(redactor)
  if (sound === undefined) {
    const text = (given: string): string => {
      const clean: unknown = attempt(() => redactor.text(given), undefined)
      return typeof clean === "string" ? clean : "<redacted>"
    }
    soundRedactors.set(redactor, (sound = { text }))
  }
  return sound
}

const soundRedactors = new WeakMap<Redactor, Redactor>()
