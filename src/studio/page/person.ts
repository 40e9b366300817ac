/** The person at the page, whose name is stored with each decision. */

import { signal } from "@preact/signals"

export const person = signal(localStorage.getItem("kernai.person") ?? "")

/** Keeps a name, without characters that a name cannot have. */
export const setPerson = (text: string): void => {
  person.value = text
    .replace(/[^\p{L}\p{M}\p{N} .'@_-]/gu, "")
    .replace(/^[^\p{L}\p{N}]+/u, "")
    .slice(0, 60)
  localStorage.setItem("kernai.person", person.value)
}
