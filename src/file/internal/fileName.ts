/**
 * Converts ids to file names.
 *
 * A name contains no separator, no dot and no capital, and is not that of a system device, so it stays inside its
 * folder and names the same file on any disk. A long name ends in its digest. Two ids never share a name.
 */

import { createHash } from "node:crypto"

const unsafe = /[^a-z0-9_-]|^(?=(?:aux|con|nul|prn|(?:com|lpt)\d)$)./g

/** Returns the file name of an id. */
export const make = (id: string): string => {
  const name = id.replace(unsafe, escape)
  return name.length <= 128 && name !== ""
    ? name
    : `${name.slice(0, kept)}%h${createHash("sha256").update(name).digest("hex")}`
}

/** Returns true if the id of a name may begin with a text. Of a long name only the beginning is known. */
export const mayBegin = (name: string, prefix: string): boolean => {
  const start = prefix.replace(/[^a-z0-9_-]/g, escape)
  if (name.startsWith(start.slice(0, kept)) && name.startsWith("%h", kept)) return true
  // The first letter of a device is escaped.
  return name.startsWith(start) || name.startsWith(escape(start) + start.slice(1))
}

const escape = (text: string): string => `%${text.charCodeAt(0).toString(16).padStart(4, "0")}`

const kept = 60

/** Returns the id or name that a file belongs to. */
export const ofFile = (file: string): string => {
  const dot = file.indexOf(".")
  return dot < 0 ? file : file.slice(0, dot)
}

/** Caches a function for the most recently used names. */
export const cache = <A>(make: (name: string) => A): ((name: string) => A) => {
  const kept = new Map<string, A>()
  return (name) => {
    const found = kept.get(name) ?? make(name)
    kept.delete(name)
    kept.set(name, found)
    const oldest = kept.keys().next()
    if (kept.size > 1_000 && !oldest.done) kept.delete(oldest.value)
    return found
  }
}
