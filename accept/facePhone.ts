/** The studio on a phone: what is wider than the screen, and how much of it the bars take. */
import type { Browser } from "playwright-core"
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

export const phoneLines = async (browser: Browser, office: Office): Promise<ReadonlyArray<Line>> => [
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
