/**
 * The output of readline, which shows what is typed while a prompt is open. Keys that are typed during an answer do not
 * mix with it: the next prompt shows them.
 */

import { Writable } from "node:stream"

type Terminal = NodeJS.WritableStream & { readonly columns?: number; readonly rows?: number }

export class PromptDisplay extends Writable {
  isShown = false
  readonly #terminal: Terminal
  readonly #onResize = () => void this.emit("resize")

  constructor(terminal: Terminal) {
    super({ decodeStrings: false })
    this.#terminal = terminal
    terminal.on("resize", this.#onResize)
  }

  /** Stops following the size of the terminal. */
  release(): void {
    this.#terminal.off("resize", this.#onResize)
  }

  /** Undefined for an endless line: readline counts no rows while nothing is shown. */
  get columns(): number | undefined {
    return this.isShown ? this.#terminal.columns : undefined
  }

  get rows(): number | undefined {
    return this.#terminal.rows
  }

  override _write(text: string, _: string, done: () => void): void {
    if (this.isShown) this.#terminal.write(text)
    done()
  }
}
