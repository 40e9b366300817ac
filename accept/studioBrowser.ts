/** A browser that looks at a studio, and what went wrong in its pages. */
import { mkdirSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Browser, Page } from "playwright-core"
import { launch } from "../bench/chromium.ts"
import type { Site } from "./studioSite.ts"
import type { Line } from "./support.ts"

/** The folder of the screenshots. */
export const shots = process.env["KERNAI_SCREENSHOTS"] ?? join(tmpdir(), "kernai-studio")

/** A browser and the studio it looks at. */
export interface Visit {
  readonly browser: Browser
  readonly site: Site
}

/** How long a walk waits for what never comes. How fast a page is, benchmarks say. */
export const patience = 120_000

type Walk = (browser: Browser) => Promise<ReadonlyArray<Line>>

/** Walks in turn. Each has a browser of its own, so that none meets pages that an earlier one left open. */
export const inOwnBrowsers = async (walks: ReadonlyArray<Walk>): Promise<ReadonlyArray<Line>> => {
  const lines: Array<Line> = []
  for (const walk of walks) {
    const browser = await launch()
    try {
      lines.push(...(await walk(browser)))
    } finally {
      await browser.close()
    }
  }
  return lines
}

/** Opens an empty page. */
export const newPage = async (browser: Browser, viewport = { width: 1280, height: 800 }): Promise<Page> => {
  const page = await browser.newPage({ viewport })
  page.setDefaultTimeout(patience)
  return page
}

/** Waits until a condition holds, or until patience is over. */
export const until = async (holds: () => Promise<boolean> | boolean): Promise<void> => {
  const end = performance.now() + patience
  while (!(await holds()) && performance.now() < end) await new Promise((resolve) => setTimeout(resolve, 50))
}

/** A page, opened with the token, and what went wrong in it. */
export const open = async ({ browser, site }: Visit) => {
  const page = await newPage(browser)
  const wrong: Array<string> = []
  page.on("pageerror", ({ message }) => wrong.push(message))
  page.on("console", (message) => {
    if (/content security policy|trusted/i.test(message.text())) wrong.push(message.text())
  })
  page.on("request", (request) => {
    if (new URL(request.url()).hostname !== "127.0.0.1") wrong.push(`asks ${request.url()}`)
  })
  await page.goto(site.url)
  await page.getByRole("link", { name: "Runs" }).waitFor()
  return { page, wrong }
}

export const goTo = (page: Page, address: string) => page.evaluate(`location.hash = ${JSON.stringify(address)}`)

/** Opens a run. `query` is `rev=3&tab=State`, say. */
export const openRun = async (page: Page, runId: string, query = "") => {
  await goTo(page, `#/runs/${encodeURIComponent(runId)}${query === "" ? "" : `?${query}`}`)
  await page.locator(".heading", { hasText: runId }).waitFor()
}

/** Waits until the open run is at rest: it is over, or waits for a person. */
export const atRest = (page: Page) =>
  page.locator(".heading.completed, .heading.waiting, .heading.no_answer, .heading.failed").waitFor()

/** Waits until the open run is over and whole. */
export const completed = (page: Page) => page.locator(".heading.completed").waitFor()

export const shown = (page: Page, text: string | RegExp) => page.getByText(text).first().waitFor()

/** The revision that the page shows, as `rev 3 of 9`. */
export const place = async (page: Page) => (await page.locator(".film output").textContent()) ?? ""

/** What a line says of a page: its figure, or what went wrong. */
export const verdict = (pass: boolean, figure: string, wrong: ReadonlyArray<string> = []) => ({
  pass: pass && wrong.length === 0,
  figure: [figure, ...wrong].join("; ")
})

/** Takes the picture of a screen in both themes, and on a narrow window. */
export const picture = async (page: Page, name: string) => {
  mkdirSync(shots, { recursive: true })
  for (const [suffix, width, colorScheme] of [
    ["light", 1280, "light"],
    ["dark", 1280, "dark"],
    ["narrow", 800, "light"]
  ] as const) {
    await page.setViewportSize({ width, height: 800 })
    await page.emulateMedia({ colorScheme })
    await page.screenshot({ path: join(shots, `${name}-${suffix}.png`) })
  }
  await page.setViewportSize({ width: 1280, height: 800 })
  await page.emulateMedia({ colorScheme: "light" })
}
