/**
 * Finds stored runs by their ids, which may be shortened.
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { RunHead } from "../../RunStore.ts"
import { RunStore } from "../../RunStore.ts"
import { Codes, CommandFailed, usage } from "../exit.ts"
import * as Store from "../storeFlag.ts"
import * as Text from "../terminalText.ts"

/** A run of a store. */
export interface Target {
  readonly store: string
  readonly id: string
}

/** Opens the existing store of a run, and uses it with the whole id of the run. */
export const inStore = Effect.fnUntraced(function* <
  A,
  E extends { readonly _tag: string; readonly message: string },
  R
>(target: Target, use: (id: string) => Effect.Effect<A, E, R>) {
  return yield* Store.onRuns(target.store, Effect.flatMap(find(target.id), use))
})

/**
 * Returns the whole id of a run. Its first part, the id of the root run, may be shortened to its beginning or its end.
 */
export const find = Effect.fnUntraced(function* (id: string) {
  const store = yield* RunStore
  if (Option.isSome(yield* store.head(id))) return id
  const [, root = "", below = ""] = /^([^:]*)(:.*)?$/s.exec(id) ?? []
  const fits = ({ runId }: RunHead) =>
    root !== "" && (runId.startsWith(root) || runId.startsWith(`run_${root}`) || runId.endsWith(root))
  const roots = yield* Effect.map(store.list({ roots: true }), (heads) => heads.filter(fits))
  const chosen = yield* one(
    id,
    roots.map(({ runId }) => runId),
    "run",
    "in this store"
  )
  return `${chosen}${below}`
})

/** Returns the one id that begins or ends with a text. */
export const pick = (text: string, ids: ReadonlyArray<string>, what: string, where: string) => {
  const exact = ids.includes(text)
  return one(text, exact ? [text] : ids.filter((id) => id.startsWith(text) || id.endsWith(text)), what, where)
}

/**
 * Returns the shortest beginning of an id that distinguishes these runs, of at least 12 characters. Only a random id is
 * shortened: any other says what the run is about.
 */
export const shortened = (id: string, among: ReadonlyArray<string>): string => {
  if (!/^(?:run_)?[0-9a-f-]{24,}$/.test(id)) return id
  const others = among.filter((other) => other !== id)
  let length = 12
  while (length < id.length && others.some((other) => other.startsWith(id.slice(0, length)))) length++
  return id.slice(0, length)
}

const shown = 10

const one = (
  text: string,
  found: ReadonlyArray<string>,
  what: string,
  where: string
): Effect.Effect<string, CommandFailed> => {
  const [first, ...others] = found
  if (first !== undefined && others.length === 0) return Effect.succeed(first)
  const name = Text.excerpt(text, 80)
  if (first === undefined) return Effect.fail(usage(`there is no ${what} ${name} ${where}`))
  const list = found.slice(0, shown).map(Text.flat).join(", ")
  const more = found.length > shown ? `, and ${found.length - shown} more` : ""
  const reason = `${name} fits ${found.length} ${what}s: ${list}${more}`
  return Effect.fail(new CommandFailed({ code: Codes.usage, reason, tag: "AmbiguousId" }))
}
