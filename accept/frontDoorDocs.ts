/**
 * The documents of the front door: every sample runs, every link holds, and the site is built.
 */
import { existing, type Line } from "./support.ts"

export const documents = (): ReadonlyArray<Line> => [
  existing("samples of every page compile and run; links and anchors hold", ["test/readme.test.ts"])
]
