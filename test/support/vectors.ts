/**
 * Test vectors, and how many of them ran.
 *
 * A runner that does not understand a vector skips it, and a skip fails the
 * file: a vector of a new shape is never passed over in silence.
 */
import { assert, it } from "@effect/vitest"
import * as fs from "node:fs"
import * as path from "node:path"

/** Reads `test/fixtures/vectors/<name>.json`. */
export const read = <A>(name: string): A =>
  JSON.parse(fs.readFileSync(path.join(import.meta.dirname, "../fixtures/vectors", `${name}.json`), "utf8"))

/** The same for a runner: what the file holds besides these keys is an expectation nobody looks at, and fails. */
export const load = <A extends object>(name: string, keys: Keys): A => {
  const file = read<A>(name)
  only(name, file, keys)
  return file
}

/** Fails when a file holds more than these keys. */
export const only = (name: string, file: object, keys: Keys) =>
  it(`${name}.json: every key is known`, () => {
    assert.deepStrictEqual(unknownKeys(file, { ...origin, ...keys }), [])
  })

/** Where a file comes from. */
const origin: Keys = {
  format: true,
  note: true,
  library: true,
  library_version: true,
  ruby: true,
  json_library: true,
  count: true,
  algorithm: true
}

/** Keys by their names. */
export const these = (...names: ReadonlyArray<string>): Keys =>
  Object.fromEntries(names.map((name) => [name, true as const]))

/** What a vector may tell about itself, in every file. */
export const about: Keys = { id: true, title: true, note: true, rules: true, category: true, disputed: true }

/**
 * The keys a runner looks at: all that is below one, a list of such, the words
 * one may have. `*` stands for every key.
 */
export interface Keys {
  readonly [key: string]: true | ReadonlySet<unknown> | Keys | readonly [Keys]
}

/** The paths of a vector that its runner does not know: a new key is a new expectation. */
export const unknownKeys = (value: unknown, keys: Keys, path = ""): ReadonlyArray<string> =>
  typeof value !== "object" || value === null
    ? []
    : Object.entries(value).flatMap(([key, part]: [string, unknown]): ReadonlyArray<string> => {
        const at = `${path}/${key}`
        const known = Object.hasOwn(keys, key) ? keys[key] : keys["*"]
        if (known === undefined) return [at]
        if (known === true) return []
        if (known instanceof Set) return known.has(part) ? [] : [`${at}: ${String(part)}`]
        if (!Array.isArray(known)) return unknownKeys(part, known as Keys, at)
        const [each] = known
        return Array.isArray(part) ? part.flatMap((one, index) => unknownKeys(one, each, `${at}/${index}`)) : [at]
      })

/** Counts vectors of one file; call `report` after the last of them. */
export const tally = (name: string) => {
  let run = 0
  const skipped: Array<string> = []
  return {
    ran: () => {
      run += 1
    },
    skip: (id: string) => {
      skipped.push(id)
    },
    report: () =>
      it(`${name}: every vector was understood`, () => {
        console.log(`${name}: ${run} run, ${skipped.length} skipped`)
        assert.deepStrictEqual(skipped, [])
        assert.isAbove(run, 0)
      })
  }
}
