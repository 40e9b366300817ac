/**
 * The messages between a program in its thread and the rest of the process.
 */

import type { CodeFailed } from "../../CodeInterpreter.ts"

/** A program as its thread gets it. */
export interface Program {
  readonly source: string
  readonly functions: ReadonlyArray<string>
  readonly now: number
  readonly seed: number
  readonly memoryBytes: number
  readonly stackBytes: number
  readonly cpuMillis: number
  readonly calls: number
  readonly outputLength: number
  readonly logLength: number
}

/** The result of a call, whose value is JSON as text. */
export type Settled =
  | { readonly type: "value"; readonly json: string }
  | { readonly type: "error"; readonly name: string; readonly message: string }

/** Where a program waits, or how it ended. Values are JSON as text. */
export type Reply =
  | {
      readonly type: "calls"
      readonly calls: ReadonlyArray<{ readonly name: string; readonly input: string; readonly line?: number }>
    }
  | { readonly type: "returned"; readonly value: string; readonly log: string }
  | Failed

export interface Failed extends Pick<CodeFailed, "reason" | "detail" | "line" | "text" | "log"> {
  readonly type: "failed"
}
