/**
 * The documents of the front door: every sample runs, every link holds, and the site is built.
 */
import { site } from "./frontDoorSite.ts"
import { attempt, existing, type Line, run } from "./support.ts"

export const documents = async (): Promise<ReadonlyArray<Line>> => [
  existing("samples of every page compile and run; links and anchors hold", ["test/readme.test.ts"]),
  existing("no export has `any` in its type, and hovers of agents and skills are short", ["test/inferred.test.ts"]),
  await attempt("npm run docs builds the site without a warning or a broken link", () => {
    const { status, stderr, stdout } = run("npm", ["run", "docs"])
    const figure = stdout.trim().split("\n").at(-1) ?? ""
    return { pass: status === 0, figure: status === 0 ? figure : `${figure} ${stderr}`.trim().slice(-300) }
  }),
  ...(await site())
]
