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
export const load = <A>(name: string): A =>
  JSON.parse(fs.readFileSync(path.join(import.meta.dirname, "../fixtures/vectors", `${name}.json`), "utf8"))

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
