/** The studio on a phone: what is wider than the screen, and how much of it the bars take. */
import type { Browser } from "playwright-core"
import { experiments } from "./faceEvaluate.ts"
import { enter } from "./faceRuns.ts"
import { shots } from "./gallery.ts"
import { idsOf, type Office } from "./gallerySite.ts"
import { verdict } from "./studioBrowser.ts"
import { attempt, type Line } from "./support.ts"

const height = 760

/** Returns how far the page and its navigation scroll sideways, and the heights of the bars. */
const measure = `(() => {
  const wide = [document.documentElement, document.querySelector("nav")]
  const bars = [...document.querySelectorAll(".side, .film")]
  return {
    sideways: Math.max(...wide.map((one) => one.scrollWidth - one.clientWidth)),
    bars: bars.reduce((sum, bar) => sum + bar.getBoundingClientRect().height, 0)
  }
})()`

interface Measured {
  readonly sideways: number
  readonly bars: number
}

/** Returns whether the results of actions end above the content of the page. */
const isAboveContent = `(() => {
  const [toast, main] = [".toast", "main"].map((name) => document.querySelector(name).getBoundingClientRect())
  return toast.bottom <= main.top
})()`

const narrow = (browser: Browser, office: Office) =>
  attempt("a phone has the actions of a run in a line and a menu, and experiments as cards", async () => {
    experiments(office)
    const page = await enter(browser, office)
    await page.setViewportSize({ width: 380, height })
    const { seats = "" } = await idsOf(office)
    await page.evaluate(`location.hash = ${JSON.stringify(`#/runs/${encodeURIComponent(seats)}`)}`)
    const actions = page.locator(".heading .actions")
    await actions.waitFor()
    const line = (await actions.boundingBox())?.height ?? height
    await page.getByText("More", { exact: true }).click()
    await page.getByRole("button", { name: "Score" }).waitFor()
    await page.getByRole("button", { name: "Rerun" }).click()
    await page.getByText("Runs again from its question").waitFor()
    const isClear: boolean = await page.evaluate(isAboveContent)
    await page.evaluate(`location.hash = "#/evaluate"`)
    const cards = page.getByRole("region", { name: /^Experiments with/ }).first()
    await cards.waitFor()
    const sideways = await cards.evaluate(({ clientWidth, scrollWidth }) => scrollWidth - clientWidth)
    await page.close()
    return verdict(
      line <= 48 && isClear && sideways === 0,
      `actions of ${Math.round(line)} px, ${isClear ? "no" : "a"} covered card, ${sideways} px sideways`
    )
  })

export const phoneLines = async (browser: Browser, office: Office): Promise<ReadonlyArray<Line>> => [
  await narrow(browser, office),
  await attempt(
    "on a phone no screen and no navigation scrolls sideways, and the bars leave 80% of the height",
    async () => {
      const page = await enter(browser, office)
      await page.setViewportSize({ width: 380, height })
      const ids = await idsOf(office)
      const wrong: Array<string> = []
      let highest = 0
      for (const { address, name } of shots) {
        await page.evaluate(`location.hash = ${JSON.stringify(address(ids))}`)
        await page.waitForTimeout(200)
        await page.locator(".skeleton").waitFor({ state: "detached" })
        const { bars, sideways }: Measured = await page.evaluate(measure)
        highest = Math.max(highest, bars)
        if (sideways > 0) wrong.push(`${name} scrolls ${sideways} px sideways`)
      }
      await page.close()
      return verdict(highest <= height / 5, `bars of ${Math.round(highest)} px at most`, wrong)
    }
  )
]
