/** The person at the page, whose name is stored with each decision. */

import { signal } from "@preact/signals"
import { inBrowser } from "./browserStorage.ts"

export const person = signal(inBrowser.get("kernai.person") ?? "")

/** Keeps a name, without characters that a name cannot have. */
export const setPerson = (text: string): void => {
  person.value = text
    .replace(/[^\p{L}\p{M}\p{N} .'@_-]/gu, "")
    .replace(/^[^\p{L}\p{N}]+/u, "")
    .slice(0, 60)
  inBrowser.set("kernai.person", person.value)
}
