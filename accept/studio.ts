/**
 * The studio in a browser: `npm run accept -- studio`. Screenshots of each screen, in both themes and at 800 pixels, are
 * written to the folder in `KERNAI_SCREENSHOTS`, or to one in the system's folder for temporary files.
 *
 * `KERNAI_STUDIO=runs`, `code`, `people`, `reach` or `bench` runs only these lines.
 */
import type { Browser } from "playwright-core"
import { program } from "../bench/chromium.ts"
import { inOwnBrowsers, shots } from "./studioBrowser.ts"
import { codeLines } from "./studioCode.ts"
import { questions, peopleLines } from "./studioPeople.ts"
import { reachLines } from "./studioReach.ts"
import { runLines } from "./studioRuns.ts"
import { withSite } from "./studioSite.ts"
import { benched, inFolder, type Line, ofFiles, tested } from "./support.ts"

const files = (): ReadonlyArray<Line> => [
  ofFiles(tested, "the state at each revision is the kernel's own fold, and blocks have their places", [
    "test/studio/journal.test.ts"
  ])
]

const only = process.env["KERNAI_STUDIO"]
const wanted = (part: string) => only === undefined || only === part

/** The walks over one studio. */
const walks = { runs: runLines, code: codeLines, people: peopleLines, reach: reachLines } as const

const inBrowser = async (): Promise<ReadonlyArray<Line>> => {
  const lines = await inFolder((folder) =>
    withSite(folder, (site) =>
      inOwnBrowsers(
        Object.entries(walks).flatMap(([part, walk]) =>
          wanted(part) ? (browser: Browser) => walk({ browser, site }, folder) : []
        )
      )
    )
  )
  if (!wanted("people")) return lines
  const asked = await inFolder((folder) =>
    withSite(folder, (site) => inOwnBrowsers([async (browser) => [await questions({ browser, site })]]))
  )
  return [...lines, ...asked]
}

export const studio = async (): Promise<ReadonlyArray<Line>> => {
  const proven = only === undefined ? files() : []
  if (program === undefined) {
    return [
      ...proven,
      { line: "the studio in a browser", pass: false, figure: "no Chromium here: apt-get install chromium" }
    ]
  }
  return [
    ...proven,
    ...(await inBrowser()),
    ...(wanted("bench") ? benched("studio") : []),
    { line: "screenshots of each screen", pass: true, figure: shots }
  ]
}
