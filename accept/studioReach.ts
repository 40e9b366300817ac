/** The page by keyboard, to other eyes, without a network, and over scenarios. */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import type { Page } from "playwright-core"
import {
  completed,
  goTo,
  newPage,
  open,
  openRun,
  patience,
  picture,
  place,
  shown,
  verdict,
  type Visit
} from "./studioBrowser.ts"
import { scenariosIn, storeIn } from "./studioSite.ts"
import { attempt, type Line, node, root } from "./support.ts"

const keyboard = (visit: Visit) =>
  attempt("the keyboard alone finds a run, goes through it, approves and forks", async () => {
    const { page, wrong } = await open(visit)
    const paid = visit.site.counts.paid
    const runId = await visit.site.submit("Please pay the keyboard")
    await page.locator(".row.waiting", { hasText: "the keyboard" }).waitFor()
    await picture(page, "runs")
    await page.keyboard.press("/")
    await page.keyboard.type("the keyboard")
    await page.locator(".row").nth(1).waitFor({ state: "detached" })
    await page.keyboard.press("Escape")
    await page.keyboard.press("j")
    await page.keyboard.press("Enter")
    await page.locator(".heading", { hasText: runId }).waitFor()
    await page.locator(".card.waiting").waitFor()
    await page.keyboard.press("a")
    await page.keyboard.press("a")
    await completed(page)
    await page.keyboard.press("4")
    const grid = page.getByRole("treegrid", { name: "Events" })
    const count = Number(await grid.getAttribute("aria-rowcount"))
    await page.keyboard.press(",")
    const slider = await page.getByRole("slider", { name: "Revision" }).getAttribute("aria-valuetext")
    await openRun(page, runId, "rev=10&tab=Events")
    const tree = page.getByRole("treegrid", { name: "Turns and calls" })
    const unfolded = await tree.getAttribute("aria-rowcount")
    await page.keyboard.press("h")
    const folded = Number(unfolded) - Number(await tree.getAttribute("aria-rowcount"))
    await page.keyboard.press("l")
    await page.keyboard.press("[")
    await page.keyboard.press("f")
    await page.getByRole("dialog", { name: "Fork" }).waitFor()
    await page.keyboard.press("Tab")
    await page.getByRole("button", { name: "Fork", exact: true }).press("Enter")
    await shown(page, "fork of")
    await page.keyboard.press("g")
    await page.keyboard.press("a")
    await page.getByRole("heading", { name: "Approvals" }).waitFor()
    await page.keyboard.press("?")
    await page.getByRole("dialog", { name: "Keys" }).waitFor()
    await page.close()
    const isDone = count > 3 && /^revision \d+ of \d+/.test(slider ?? "") && folded === 1
    return verdict(isDone && visit.site.counts.paid === paid + 1, `${count} rows, ${slider}`, wrong)
  })

/** The contrast of texts against what is behind them, at its lowest, with the element that has it. */
const lowestContrast = `(() => {
  const pen = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true })
  const parse = (text) => {
    pen.clearRect(0, 0, 1, 1)
    pen.fillStyle = text
    pen.fillRect(0, 0, 1, 1)
    return [...pen.getImageData(0, 0, 1, 1).data]
  }
  const light = ([r, g, b]) => {
    const part = (value) => (value /= 255) <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b)
  }
  const behind = (element) => {
    for (let one = element; one !== null; one = one.parentElement) {
      const color = parse(getComputedStyle(one).backgroundColor)
      if (color[3] > 200) return color
    }
    return parse(getComputedStyle(document.body).backgroundColor)
  }
  let lowest = [99, ""]
  for (const element of document.querySelectorAll("body *")) {
    const hasText = [...element.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim() !== "")
    if (!hasText || element.closest("canvas, iframe, option, [disabled]") !== null || element.getClientRects().length === 0) continue
    const [a, b] = [light(parse(getComputedStyle(element).color)), light(behind(element))]
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)
    if (ratio < lowest[0]) lowest = [ratio, element.tagName + "." + element.className + " " + element.textContent.slice(0, 30)]
  }
  return lowest
})()`

const contrasts = async (page: Page, addresses: ReadonlyArray<string>) => {
  let worst: readonly [number, string] = [99, ""]
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme })
    for (const address of addresses) {
      await goTo(page, address)
      await page.waitForTimeout(300)
      const found: readonly [number, string] = await page.evaluate(lowestContrast)
      if (found[0] < worst[0]) worst = [found[0], `${colorScheme} ${address.slice(0, 40)} ${found[1]}`]
    }
  }
  return worst
}

const eyes = (visit: Visit) =>
  attempt(
    "rows and controls have roles and names, texts have contrast in both themes, and less motion plays nothing",
    async () => {
      const { page, wrong } = await open(visit)
      const runId = await visit.site.submit("Is the seat free?")
      await openRun(page, runId, "tab=Events")
      await completed(page)
      const outline = await page.locator("main").ariaSnapshot()
      const named = [
        `treegrid "Turns and calls"`,
        `treegrid "Events"`,
        `slider "Revision"`,
        `tab "Explain 1"`,
        `complementary "Inspector"`,
        "row"
      ].filter((name) => !outline.includes(name))
      const unnamed = Number(
        await page.evaluate(
          `[...document.querySelectorAll("button, a, input, select, textarea")].filter((one) => (one.innerText + (one.ariaLabel ?? "") + (one.labels?.[0]?.innerText ?? "")).trim() === "").length`
        )
      )
      const [ratio, where] = await contrasts(page, [
        "#/",
        "#/questions",
        `#/runs/${runId}?tab=Events`,
        `#/runs/${runId}?tab=Conversation`,
        `#/runs/${runId}?tab=Explain`,
        "#/chat/clerk/contrast"
      ])
      await page.emulateMedia({ reducedMotion: "reduce" })
      await openRun(page, runId, "rev=2")
      await page.keyboard.press("Space")
      await page.waitForTimeout(600)
      const still = await place(page)
      await page.close()
      return verdict(
        named.length === 0 && unnamed === 0 && ratio >= 4.5 && still.startsWith("rev 2 "),
        `contrast at least ${ratio.toFixed(2)} (${where}); ${named.length + unnamed} without a name ${named.join(", ")}`,
        wrong
      )
    }
  )

/** What a page draws of a run at a revision. */
const drawnAt = async (page: Page, runId: string, at: number) => {
  const texts: Array<string> = []
  for (const tab of ["Conversation", "Blocks", "Events", "State"]) {
    await openRun(page, runId, `rev=${at}&tab=${tab}`)
    await page.getByRole("tab", { name: new RegExp(`^${tab}`), selected: true }).waitFor()
    texts.push(await page.locator("[role=tabpanel]").innerText(), await page.locator(".tree").innerText())
  }
  return texts.join("\n")
}

const exported = (visit: Visit, folder: string) =>
  attempt(
    "an exported file plays and searches from the disk with the network off, equal to the live page at 5 revisions",
    async () => {
      const { page, wrong } = await open(visit)
      const runId = await visit.site.submit("Is the seat free?")
      await openRun(page, runId)
      await completed(page)
      const [download] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("link", { name: "export" }).click()
      ])
      const file = join(folder, "run.html")
      await download.saveAs(file)
      const alone = await visit.browser.newContext({ offline: true, viewport: { width: 1280, height: 800 } })
      const copy = await alone.newPage()
      copy.setDefaultTimeout(patience)
      copy.on("pageerror", ({ message }) => wrong.push(message))
      await copy.goto(pathToFileURL(file).href)
      await completed(copy)
      let equal = 0
      for (const at of [1, 4, 7, 9, 12]) {
        const [live, played] = [await drawnAt(page, runId, at), await drawnAt(copy, runId, at)]
        if (live === played) equal++
        else wrong.push(`revision ${at} differs`)
      }
      await openRun(copy, runId, "rev=1&tab=Events")
      await copy.getByRole("button", { name: "16x" }).click()
      await copy
        .locator(".film output")
        .filter({ hasText: /^rev (\d+) of \1$/ })
        .waitFor()
      await copy.getByLabel("Filter events").fill("seat taken")
      const rows = await copy.locator(".body .virtual").count()
      await picture(copy, "export")
      await Promise.all([alone.close(), page.close()])
      return verdict(equal === 5 && rows >= 1, `${equal} revisions are equal, ${rows} rows found`, wrong)
    }
  )

const scenario = (name: string, text: string) => `import { Scenario } from "kernai/testing"
export default Scenario.make({
  name: "${name}", instructions: "You greet.", input: "Hello!",
  offline: { root: ['<block type="final">${text}</block>'] },
  expect: ({ result }) => (result?.includes("Hello") ? [] : ["it does not greet back"])
})
`

const matrix = (visit: Visit, folder: string) =>
  attempt("a matrix of 2 scenarios and 2 models is a grid, and a cell opens its run", async () => {
    const files = join(folder, "files")
    mkdirSync(files, { recursive: true })
    writeFileSync(join(files, "greets.ts"), scenario("greets", "Hello to you."))
    writeFileSync(join(files, "mutters.ts"), scenario("mutters", "Hm."))
    const models = ["-m", "script/whole", "-m", "script/chars"]
    const places = ["--log", scenariosIn(folder), "--create", "--store", `sqlite:${storeIn(folder)}`]
    node(["--conditions=kernai-source", "src/cli/main.ts", "scenario", "matrix", files, ...models, ...places], {
      cwd: root
    })
    const { page, wrong } = await open(visit)
    await page.getByRole("link", { name: "Scenarios" }).click()
    await page.locator(".grid").waitFor()
    const cells = await page.locator(".grid td a").count()
    const failed = await page.locator(".grid td", { hasText: "it does not greet back" }).count()
    await shown(page, "1 of 2 ok")
    await picture(page, "scenarios")
    await page.locator(".grid td a", { hasText: "ok" }).first().click()
    await completed(page)
    const heading = await page.locator(".heading").textContent()
    await page.close()
    return verdict(
      cells === 4 && failed === 2 && heading?.includes("greets") === true,
      `${cells} cells, ${failed} failed; opened ${heading?.trim()}`,
      wrong
    )
  })

const firstRun = ({ browser }: Pick<Visit, "browser">) =>
  attempt("'kernai studio' without a store shows a recorded run, without a key", async () => {
    const script = `
      const { spawn } = require("node:child_process")
      const child = spawn(process.execPath, ["--conditions=kernai-source", "src/cli/main.ts", "studio"], { stdio: ["ignore", "pipe", "ignore"], detached: true })
      child.stdout.once("data", (text) => { console.log(String(text).trim()); console.log(child.pid); child.unref(); child.stdout.destroy(); process.exit(0) })`
    const [url = "", pid = ""] = node(["--eval", script]).stdout.trim().split("\n")
    try {
      const page = await newPage(browser)
      await page.goto(url)
      await page.locator(".row.completed").first().click()
      await completed(page)
      await page.close()
      return verdict(true, "completed")
    } finally {
      if (pid !== "") process.kill(Number(pid))
    }
  })

const empty = (visit: Visit) =>
  attempt(
    "an empty list says why it is empty once it is read, and a filter that finds nothing can be removed",
    async () => {
      const { page, wrong } = await open(visit)
      await goTo(page, "#/")
      await page.getByLabel("Filter runs").fill("status:failed nothing-like-this")
      await shown(page, "No run fits the filter")
      await picture(page, "empty")
      await page.getByRole("button", { name: /nothing-like-this/ }).click()
      await page.locator(".row").first().waitFor()
      await page.keyboard.press("?")
      await page.getByRole("dialog", { name: "Keys" }).waitFor()
      await picture(page, "keys")
      await page.keyboard.press("Escape")
      // Until the calls are read, the page does not say that none waits.
      await page.route("**/data/questions*", () => undefined)
      await goTo(page, "#/questions")
      await page.getByRole("status", { name: "reading what waits" }).waitFor()
      const claims = await page.getByText("Nothing waits for you").count()
      await page.close()
      return verdict(claims === 0, "removed", wrong)
    }
  )

/** The lines about reach. */
export const reachLines = async (visit: Visit, folder: string): Promise<ReadonlyArray<Line>> => [
  await keyboard(visit),
  await eyes(visit),
  await exported(visit, folder),
  await matrix(visit, folder),
  await empty(visit),
  await firstRun(visit)
]
