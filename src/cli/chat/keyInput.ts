/**
 * The keys of a terminal for readline, which ends a line at every line break. Those of a pasted text, and Alt-Enter,
 * become a mark instead, so that a message of several lines is edited as one.
 */

import { PassThrough } from "node:stream"
import { StringDecoder } from "node:string_decoder"

/** The mark of a line break within a message. */
export const lineBreak = "↵"

/** Asks a terminal to mark the beginning and the end of a pasted text, or not to. */
export const pasteMarks = { on: "\u001b[?2004h", off: "\u001b[?2004l" } as const

/** A terminal can be set to send each key at once. */
type Terminal = NodeJS.ReadableStream & { readonly setRawMode?: (isRaw: boolean) => unknown }

/** Keys, until `end` is called. */
export interface Keys {
  readonly stream: NodeJS.ReadableStream
  readonly end: () => void
}

export const from = (terminal: Terminal): Keys => {
  const translate = translator()
  const decoder = new StringDecoder("utf8")
  const keys = new PassThrough()
  const onData = (data: Buffer | string) =>
    void keys.write(translate(typeof data === "string" ? data : decoder.write(data)))
  const onEnd = () => void keys.end()
  // Readline reports a terminal that is gone.
  const onError = (error: Error) => void keys.emit("error", error)
  terminal.on("data", onData).on("end", onEnd).on("error", onError)
  const setRawMode = (isRaw: boolean) => terminal.setRawMode?.(isRaw)
  return {
    stream: Object.assign(keys, { setRawMode }),
    end: () => {
      terminal.off("data", onData).off("end", onEnd).off("error", onError)
      terminal.pause()
    }
  }
}

/** Returns a function over the pieces of the input. A sequence may be cut between two of them. */
const translator = (): ((piece: string) => string) => {
  let isPasting = false
  let rest = ""
  return (piece) => {
    const text = rest + piece
    rest = cutSequence.exec(text)?.[0] ?? ""
    return text
      .slice(0, text.length - rest.length)
      .split(sequences)
      .map((part) => {
        if (part === pasteStart || part === pasteEnd) {
          isPasting = part === pasteStart
          return ""
        }
        if (part === `${escape}\r` || part === `${escape}\n`) return lineBreak
        return isPasting ? pasted(part) : part
      })
      .join("")
  }
}

const escape = "\u001b"
const pasteStart = `${escape}[200~`
const pasteEnd = `${escape}[201~`
const sequences = new RegExp(`(${escape}\\[20[01]~|${escape}[\\r\\n])`)
const cutSequence = new RegExp(`${escape}\\[(?:2(?:0[01]?)?)?$`)

/** Returns a pasted text without characters that would act as keys. */
const pasted = (text: string): string =>
  text
    .replace(/\r\n|\r|\n/g, lineBreak)
    .replaceAll("\t", "  ")
    .replace(/\p{Cc}/gu, "")
