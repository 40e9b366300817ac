/** Evaluations: what `kernai eval` measured, over time and answer by answer. */
import { writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import type { Browser } from "playwright-core"
import { enter } from "./faceRuns.ts"
import type { Office } from "./gallerySite.ts"
import { verdict } from "./studioBrowser.ts"
import { attempt, type Line, node, root } from "./support.ts"

/** Evaluates recorded replies of which some are right, with a threshold. */
const evaluate = (office: Office, right: number, threshold: number) => {
  const folder = dirname(office.evaluations)
  const rows = ["Oslo", "Lima", "Paris", "Rome"].map((expected, index) =>
    JSON.stringify({
      id: `capital ${index + 1}`,
      input: `The capital of country ${index + 1}?`,
      expected,
      replies: [index < right ? expected : "I do not know."]
    })
  )
  writeFileSync(join(folder, "capitals.jsonl"), rows.join("\n"))
  const flags = ["--log", office.evaluations, "--threshold", String(threshold)]
  return node(["--conditions=kernai-source", join(root, "bin/kernai.mjs"), "eval", "capitals.jsonl", ...flags], {
    cwd: folder
  })
}

/** Two experiments with one data set, of which the second is below its gate. */
export const experiments = (office: Office): void => {
  evaluate(office, 4, 0.75)
  evaluate(office, 2, 0.75)
}

const course = (browser: Browser, office: Office) =>
  attempt("an experiment below its gate is found, with the answers that did not pass and their reasons", async () => {
    experiments(office)
    const page = await enter(browser, office)
    await page.getByRole("link", { name: "Evaluate" }).click()
    await page.locator(".course a").nth(1).waitFor()
    const rows = await page.locator(".experiments tbody tr").allTextContents()
    await page.getByRole("row", { name: "Below 75%" }).getByRole("link").click()
    const wrong = page.locator("article.card")
    await wrong.nth(1).waitFor()
    const reasons = await page.locator("article p.error").allTextContents()
    await page.getByRole("button", { name: "All 4" }).click()
    await wrong.nth(3).waitFor()
    await page.close()
    const pass = rows.length === 2 && rows[0]?.includes("−50") === true && reasons.length === 2
    return verdict(pass, `${rows.length} experiments, ${reasons.join(", ")}`)
  })

export const evaluateLines = async (browser: Browser, office: Office): Promise<ReadonlyArray<Line>> => [
  await course(browser, office)
]
