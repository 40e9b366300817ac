/**
 * Writes lines that fit a terminal.
 *
 * A pen knows the line that is still open and who may go on with it: two runs
 * at once never mix on a line. Foreign text goes through it and comes out on
 * one line, made visible, and cut where the terminal ends (S-19).
 */

import type { RunScope } from "../RunEvent.ts"
import * as Text from "./terminalText.ts"

/** What the terminal can show. */
export interface Options {
  readonly columns: number
  readonly colors: boolean
}

/** Where the cursor is: on a line that is still being written, or at the start of one. */
export interface State {
  readonly open: Open | undefined
}

/** A line that is still being written. */
export interface Open {
  /** Who may go on writing on the line. */
  readonly key: string
  readonly used: number
  /** Whether more is promised: a line that is left before its end says so. */
  readonly goesOn: boolean
  /** What a blank would be: superfluous after a label, or due before the next word. */
  readonly gap: "none" | "label" | "due"
  /** The first half of a character whose other half is still to come. */
  readonly held: string
  readonly isFull: boolean
}

/** The start of a line. */
export const initial: State = { open: undefined }

/** The colours, by what they say. */
export type Tone = "title" | "label" | "quiet" | "good" | "warning" | "bad"

/** A text in a colour, where there are colours. */
export const paint = (text: string, tone: Tone, options: Pick<Options, "colors">): string =>
  options.colors ? `\u001b[${codes[tone]}m${text}\u001b[0m` : text

const codes: { readonly [tone in Tone]: string } = {
  title: "1",
  label: "36",
  quiet: "2",
  good: "32",
  warning: "33",
  bad: "31"
}

const narrowest = 40

/** Collects the text of one event. Colours take no room; everything else is counted. */
export class Pen {
  readonly options: Options
  #open: Open | undefined
  #text = ""
  #margin: string
  #owner: string

  constructor({ open }: State, options: Options, { depth, runId }: Pick<RunScope, "depth" | "runId">) {
    this.#open = open
    this.options = options
    this.#margin = "  ".repeat(Math.min(depth, 8))
    this.#owner = runId
  }

  done(): readonly [State, string] {
    return [{ open: this.#open }, this.#text]
  }

  /** A whole line of ours. */
  line(text: string): void {
    this.#endLine(true)
    this.#text += `${this.#margin}${text}\n`
  }

  /** Something that went another way than the model meant. */
  note(text: string): void {
    this.line(`  ${paint(`! ${Text.excerpt(text, this.#room(4))}`, "warning", this.options)}`)
  }

  /** A line of a label, a name and something about it. */
  fact(label: string, name: string, about: string): void {
    this.#begin("", label, name, false)
    this.#append(about)
    this.#endLine(false)
  }

  /** Starts a line that goes on. */
  open(key: string, label: string, name: string): void {
    this.#begin(this.#keyOf(key), label, name, true)
  }

  /** Goes on with a line, when it is still the open one. */
  more(key: string, text: string): void {
    if (this.#open?.key === this.#keyOf(key)) this.#append(text)
  }

  /** Goes on with a line, or starts it with the first text that shows. */
  write(key: string, label: string, name: string, text: string): void {
    if (this.#open?.key !== this.#keyOf(key)) {
      if (text.trim() === "") return
      this.#begin(this.#keyOf(key), label, name, false)
    }
    this.#append(text)
  }

  /** Ends a line, when it is still the open one. */
  stop(key: string): void {
    if (this.#open?.key === this.#keyOf(key)) this.#endLine(false)
  }

  /** Ends a line; writes it anew when others have written since. */
  close(key: string, label: string, name: string, text: string): void {
    if (this.#open?.key === this.#keyOf(key)) this.#endLine(false)
    else this.fact(label, name, text)
  }

  result(key: string, label: string, name: string, durationMs: number, output: unknown): void {
    this.#resume(key, label, name)
    this.#put(`${Text.duration(durationMs)}  `, "good")
    this.#append(typeof output === "string" ? output : (JSON.stringify(output) ?? ""))
    this.#endLine(false)
  }

  failure(key: string, label: string, name: string, error: string): void {
    this.#resume(key, label, name)
    this.#put(Text.excerpt(`failed: ${error}`, this.#room(this.#open?.used ?? 0)), "bad")
    this.#endLine(false)
  }

  #keyOf(key: string): string {
    return `${this.#owner} ${key}`
  }

  #room(taken: number): number {
    return Math.max(20, this.options.columns - this.#margin.length - taken)
  }

  #resume(key: string, label: string, name: string): void {
    if (this.#open?.key !== this.#keyOf(key)) this.#begin(this.#keyOf(key), label, name, false)
  }

  #begin(key: string, label: string, name: string, goesOn: boolean): void {
    this.#endLine(true)
    this.#open = { key, used: this.#margin.length + 2, goesOn, gap: "label", held: "", isFull: false }
    this.#text += `${this.#margin}  `
    this.#put(`${Text.excerpt(label, 20).padEnd(9)} `, "label")
    if (name !== "") this.#put(`${Text.excerpt(name, 40)}  `)
  }

  #put(text: string, tone?: Tone): void {
    if (this.#open === undefined) return
    this.#text += tone === undefined ? text : paint(text, tone, this.options)
    this.#open = { ...this.#open, used: this.#open.used + Text.width(text), gap: "label" }
  }

  #append(text: string): void {
    const open = this.#open
    if (open === undefined || open.isFull) return
    const room = Math.max(1, Math.max(narrowest, this.options.columns) - 1 - open.used)
    // Far more than fits need not be looked at.
    const start = text.slice(0, room * 4 + 8)
    const whole = open.held + start
    const held = /[\ud800-\udbff]$/.test(whole) ? whole.slice(-1) : ""
    const line = Text.flat(held === "" ? whole : whole.slice(0, -1))
    const word = line.replace(/^ | $/g, "")
    const isDue = open.gap === "due" || (open.gap === "none" && line.startsWith(" "))
    const next = word === "" ? "" : `${isDue ? " " : ""}${word}`
    const fits = Text.width(next) <= room && start.length === text.length
    const shown = fits ? next : `${Text.clip(next, room - 1)}…`
    this.#text += shown
    this.#open = {
      ...open,
      used: open.used + Text.width(shown),
      gap: word === "" ? (isDue ? "due" : open.gap) : line.endsWith(" ") ? "due" : "none",
      held,
      isFull: !fits
    }
  }

  #endLine(isInterrupted: boolean): void {
    if (this.#open === undefined) return
    this.#text += isInterrupted && this.#open.goesOn && !this.#open.isFull ? "…\n" : "\n"
    this.#open = undefined
  }
}
