/** From a failed run to its cause and to the button that continues it. */
import type { Browser } from "playwright-core"
import { enter } from "./faceRuns.ts"
import { idsOf, type Office } from "./gallerySite.ts"
import { verdict } from "./studioBrowser.ts"
import { attempt, type Line } from "./support.ts"

export const failureLines = async (browser: Browser, office: Office): Promise<ReadonlyArray<Line>> => [
  await attempt("a failure is named with the vendor's words first, and its button continues the run", async () => {
    const page = await enter(browser, office)
    const { poem, seats } = await idsOf(office)
    await page.locator(".row.failed", { hasText: "poem" }).click()
    await page.locator(".banner", { hasText: "invalid x-api-key" }).waitFor()
    const begun = performance.now()
    await page.getByRole("button", { name: "Explain" }).click()
    const card = page.locator(".explain .card").first()
    const text = (await card.textContent()) ?? ""
    const before = await office.headOf(poem ?? "")
    await card.getByRole("button", { name: "Retry" }).click()
    await page.getByText("Offered to a worker again").waitFor()
    await page.evaluate(`location.hash = "#/runs/${seats}?tab=Explain"`)
    await page.locator(".explain", { hasText: "seat taken" }).waitFor()
    await page.getByRole("button", { name: "Fork before it" }).click()
    await page.getByRole("dialog", { name: "Fork" }).waitFor()
    const again = await page.locator(".again").textContent()
    await page.keyboard.press("Escape")
    const milliseconds = Math.round(performance.now() - begun)
    await page.close()
    const pass = /^\s*Key refused.*invalid x-api-key/.test(text) && before?.status.type === "failed" && again === "book"
    return verdict(pass, `${text.slice(0, 60).trim()}; the fork runs ${again} again; ${milliseconds} ms`)
  })
]
