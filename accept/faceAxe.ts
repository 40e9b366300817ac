/** Accessibility by the rules of axe, on each screen, in both themes and on a phone. */
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import type { Browser } from "playwright-core"
import { experiments } from "./faceEvaluate.ts"
import { enter } from "./faceRuns.ts"
import { shots } from "./gallery.ts"
import type { Office } from "./gallerySite.ts"
import { idsOf } from "./gallerySite.ts"
import { verdict } from "./studioBrowser.ts"
import { attempt, type Line } from "./support.ts"

interface Found {
  readonly violations: ReadonlyArray<{
    readonly id: string
    readonly impact: string
    readonly nodes: ReadonlyArray<{ readonly target: ReadonlyArray<string> }>
  }>
}

const looks = [
  { width: 1440, colorScheme: "light" },
  { width: 1440, colorScheme: "dark" },
  { width: 380, colorScheme: "light" }
] as const

export const axeLines = async (browser: Browser, office: Office): Promise<ReadonlyArray<Line>> => [
  await attempt("axe finds nothing serious and nothing moderate on any screen", async () => {
    experiments(office)
    const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")
    const page = await enter(browser, office)
    await page.evaluate(axe)
    const ids = await idsOf(office)
    const wrong = new Set<string>()
    let checked = 0
    for (const { colorScheme, width } of looks) {
      await page.setViewportSize({ width, height: 810 })
      await page.emulateMedia({ colorScheme })
      for (const { act, address, name } of shots) {
        await page.evaluate(`location.hash = ${JSON.stringify(address(ids))}`)
        await page.waitForTimeout(400)
        await act?.(page)
        await page.locator(".skeleton").waitFor({ state: "detached" })
        const { violations }: Found = await page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
        await page.keyboard.press("Escape")
        checked++
        for (const { id, impact, nodes } of violations) {
          if (impact !== "minor") wrong.add(`${name}: ${id} (${nodes[0]?.target.join(" ")})`)
        }
      }
    }
    await page.close()
    return verdict(wrong.size === 0, `${checked} looks, ${wrong.size} findings`, [...wrong])
  })
]
