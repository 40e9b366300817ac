/**
 * How the studio looks and is used: `npm run accept -- face`. Walks of people in a browser, accessibility, sizes, and the pictures of
 * `docs/gallery`.
 *
 * `KERNAI_FACE=runs`, `run`, `failures`, `operate`, `people`, `evaluate`, `counts`, `chat`, `phone`, `guest` or `axe` runs only these
 * walks.
 */
import { readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import type { Browser } from "playwright-core"
import { program } from "../bench/chromium.ts"
import { axeLines } from "./faceAxe.ts"
import { chatLines } from "./faceChat.ts"
import { countLines } from "./faceCounts.ts"
import { evaluateLines } from "./faceEvaluate.ts"
import { failureLines } from "./faceFailures.ts"
import { guestLines } from "./faceGuest.ts"
import { operateLines } from "./faceOperate.ts"
import { peopleLines } from "./facePeople.ts"
import { phoneLines } from "./facePhone.ts"
import { runLines } from "./faceRun.ts"
import { runsLines } from "./faceRuns.ts"
import { pictures } from "./gallery.ts"
import { withOffice } from "./gallerySite.ts"
import { inOwnBrowsers } from "./studioBrowser.ts"
import { atMost, existing, inFolder, type Line, root } from "./support.ts"

const size = (): Line => {
  const bytes = ["page.js", "page.css"].reduce(
    (sum, name) => sum + gzipSync(readFileSync(join(root, "src/studio/assets", name)), { level: 9 }).length,
    0
  )
  return atMost("kilobytes of the page at its first load, compressed", Math.ceil(bytes / 1_000), 120)
}

const gallery = (): Line => {
  const folder = join(root, "docs/gallery")
  const found = readdirSync(folder).filter((name) => name.endsWith(".png"))
  const missing = pictures.filter((name) => !found.includes(name))
  const largest = Math.max(...found.map((name) => statSync(join(folder, name)).size))
  return {
    line: "the gallery shows each screen in both themes, in small files",
    pass: missing.length === 0 && largest <= 120_000,
    figure: `${found.length} pictures, ${Math.ceil(largest / 1_000)} KB at most; missing: ${missing.join(", ") || "none"}`
  }
}

const only = process.env["KERNAI_FACE"]
const wanted = (part: string) => only === undefined || only === part

/** The walks over one office. */
const walks = {
  runs: runsLines,
  run: runLines,
  failures: failureLines,
  operate: operateLines,
  people: peopleLines,
  evaluate: evaluateLines,
  chat: chatLines,
  phone: phoneLines,
  guest: guestLines,
  axe: axeLines
} as const

const inBrowser = (): Promise<ReadonlyArray<Line>> =>
  inFolder((folder) =>
    withOffice(folder, (office) =>
      inOwnBrowsers(
        Object.entries(walks).flatMap(([part, walk]) =>
          wanted(part) ? (browser: Browser) => walk(browser, office) : []
        )
      )
    )
  )

const proven = (): ReadonlyArray<Line> => [
  existing("colors, contrast and statuses follow one file of tokens", ["test/studio/design.test.ts"]),
  existing("hidden, reordering and imitating characters are marked", ["test/kit/seenText.test.ts"]),
  existing("each failure has its own name and action", ["test/studio/failureCause.test.ts"]),
  existing("tables and trees of the terminal fit 40, 80 and 140 columns", [
    "test/cli/table.test.ts",
    "test/cli/runs/listRuns.test.ts",
    "test/cli/runs/waterfall.test.ts"
  ]),
  existing("the studio keeps its port, and opens in a browser", ["test/cli/studio.test.ts"]),
  size(),
  gallery()
]

export const face = async (): Promise<ReadonlyArray<Line>> => [
  ...(only === undefined ? proven() : []),
  ...(wanted("counts") ? await countLines() : []),
  ...(program === undefined
    ? [{ line: "the walks in a browser", pass: false, figure: "no Chromium here: apt-get install chromium" }]
    : await inBrowser())
]
