/**
 * What the suite uses of a workspace. Every workspace of `kernai/workspace` fits.
 */

import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

/** Every refusal has a reason. */
export interface Refusal {
  readonly reason: string
}

type Result<A> = Effect.Effect<A, Refusal>

/** A workspace as the suite sees it. */
export interface Subject {
  readonly root: string
  readonly read: (
    path: string
  ) => Result<
    { readonly _tag: "Text"; readonly text: string } | { readonly _tag: "Binary"; readonly bytes: Uint8Array }
  >
  readonly write: <E = never>(
    path: string,
    content: string | Uint8Array,
    before?: () => Effect.Effect<void, E>
  ) => Effect.Effect<{ readonly difference: string }, Refusal | E>
  readonly edit: (
    path: string,
    edit: { readonly oldText: string; readonly newText: string; readonly all?: boolean }
  ) => Result<{ readonly places: number; readonly difference: string }>
  readonly list: (path: string) => Result<ReadonlyArray<{ readonly name: string; readonly kind: string }>>
  readonly glob: (
    pattern: string,
    options?: { readonly path?: string; readonly limit?: number }
  ) => Result<{ readonly items: ReadonlyArray<string>; readonly isCut: boolean }>
  readonly grep: (
    pattern: string,
    options?: { readonly path?: string; readonly glob?: string; readonly ignoreCase?: boolean; readonly limit?: number }
  ) => Result<{
    readonly items: ReadonlyArray<{ readonly path: string; readonly line: number; readonly text: string }>
    readonly isCut: boolean
  }>
  readonly run: (
    command: string,
    options?: { readonly timeout?: number }
  ) => Result<{ readonly output: string; readonly exitCode?: number }>
  readonly start: (command: string) => Result<string>
  readonly output: (
    id: string,
    offset?: number
  ) => Result<{ readonly text: string; readonly from: number; readonly next: number; readonly exitCode?: number }>
  readonly stop: (id: string) => Result<void>
  readonly snapshot: Result<ReadonlyMap<string, string>>
  readonly contents: (
    paths: ReadonlyArray<string>,
    limits: { readonly maxFileBytes: number; readonly maxBytes: number }
  ) => Result<ReadonlyMap<string, Uint8Array>>
  readonly restore: (files: ReadonlyMap<string, Uint8Array | undefined>) => Result<void>
}

/** A sentence, and its check of a workspace. */
export interface Check {
  readonly name: string
  readonly body: (workspace: Subject) => Effect.Effect<void, unknown, Scope.Scope>
}
