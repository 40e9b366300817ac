/**
 * The documents of the front door: every sample runs, every link holds, and the site is built.
 */
import { existing, type Line } from "./support.ts"

export const documents = (): ReadonlyArray<Line> => [
  existing("every sample of the documents is a file that compiles, runs and prints what it documents", [
    "test/docs/samples.test.ts",
    "test/readme.test.ts"
  ]),
  existing("links and anchors of every page hold", ["test/docs/links.test.ts"])
]
