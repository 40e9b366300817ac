/** A browser that looks at a studio, and what went wrong in its pages. */
import { mkdirSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Browser, Page } from "playwright-core"
import type { Site } from "./studioSite.ts"

/** The folder of the screenshots. */
export const shots = process.env["KERNAI_SCREENSHOTS"] ?? join(tmpdir(), "kernai-studio")

/** A browser and the studio it looks at. */
export interface Visit {
  readonly browser: Browser
  readonly site: Site
}

/** A page, opened with the token, and what went wrong in it. */
export const open = async ({ browser, site }: Visit) => {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } })
  const wrong: Array<string> = []
  page.on("pageerror", ({ message }) => wrong.push(message))
  page.on("console", (message) => {
    if (/content security policy|trusted/i.test(message.text())) wrong.push(message.text())
  })
  page.on("request", (request) => {
    if (new URL(request.url()).hostname !== "127.0.0.1") wrong.push(`asks ${request.url()}`)
  })
  page.setDefaultTimeout(20_000)
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
