/** Evaluations: what `kernai eval` measured, over time and answer by answer. */
import { writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import type { Browser } from "playwright-core"
import { enter, openNew } from "./faceRuns.ts"
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

/** Experiments with one data set of four questions, each with so many right answers. The last one is below its gate. */
export const experiments = (office: Office, right: ReadonlyArray<number> = [4, 2]): void => {
  for (const count of right) evaluate(office, count, 0.75)
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

const collect = (browser: Browser, office: Office) =>
  attempt("a run becomes a row of a data set and is scored, and a command evaluates the data set", async () => {
    const { page } = await openNew(browser, office, "What is stored of a collected run?")
    await page.getByRole("button", { name: "Add to data set" }).click()
    await page.getByLabel("the data set").fill("guides")
    await page.getByRole("button", { name: "Add", exact: true }).click()
    await page.getByText("Added to guides").waitFor()
    await page.getByRole("button", { name: "Score" }).click()
    await page.getByLabel("New label").fill("shows data")
    await page.keyboard.press("Enter")
    await page.getByLabel("why").fill("It shows the table.")
    await page.getByRole("button", { name: "Good" }).click()
    await page.getByText("Scored as good").waitFor()
    await page.getByRole("link", { name: "Evaluate" }).click()
    await page.locator("details", { hasText: "guides" }).locator("summary").click()
    await page.getByRole("link", { name: "What is stored of a collected run?" }).waitFor()
    await page.getByRole("button", { name: "shows data 1" }).click()
    await page.getByText("1 of 1 good").waitFor()
    await page.getByText("It shows the table.").waitFor()
    await page.close()
    const ran = node(["--conditions=kernai-source", join(root, "bin/kernai.mjs"), "eval", "evals/guides.jsonl"], {
      cwd: dirname(office.evaluations)
    })
    return verdict(/0 of 0 passed.*1 skipped/.test(ran.stdout), ran.stdout.trim())
  })

export const evaluateLines = async (browser: Browser, office: Office): Promise<ReadonlyArray<Line>> => [
  await course(browser, office),
  await collect(browser, office)
]
