/** Accessibility by the rules of axe, on each screen, in both themes and on a phone. */
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import type { Browser, Page } from "playwright-core"
import { experiments } from "./faceEvaluate.ts"
import { chatOf } from "./faceGuest.ts"
import { enter } from "./faceRuns.ts"
import { shots } from "./gallery.ts"
import { idsOf, invoice, type Office } from "./gallerySite.ts"
import { newPage, verdict } from "./studioBrowser.ts"
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

/** Colors change at once: in between, a text of one theme stands on a back of the other. */
const reducedMotion = "reduce"

const addAxe = (page: Page): Promise<unknown> =>
  page.evaluate(readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8"))

/** Returns what axe finds in a page that is not minor. */
const findingsIn = async (page: Page, name: string): Promise<ReadonlyArray<string>> => {
  const { violations }: Found = await page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
  return violations.flatMap(({ id, impact, nodes }) =>
    impact === "minor" ? [] : [`${name}: ${id} (${nodes[0]?.target.join(" ")})`]
  )
}

const screens = (browser: Browser, office: Office) =>
  attempt("axe finds nothing serious and nothing moderate on any screen", async () => {
    experiments(office)
    const page = await enter(browser, office)
    await addAxe(page)
    const ids = await idsOf(office)
    const wrong = new Set<string>()
    let checked = 0
    for (const { colorScheme, width } of looks) {
      await page.setViewportSize({ width, height: 810 })
      await page.emulateMedia({ colorScheme, reducedMotion })
      for (const { act, address, name } of shots) {
        await page.evaluate(`location.hash = ${JSON.stringify(address(ids))}`)
        await page.waitForTimeout(400)
        await act?.(page)
        await page.locator(".skeleton").waitFor({ state: "detached" })
        for (const finding of await findingsIn(page, name)) wrong.add(finding)
        await page.keyboard.press("Escape")
        checked++
      }
    }
    await page.close()
    return verdict(wrong.size === 0, `${checked} looks, ${wrong.size} findings`, [...wrong])
  })

const visitor = (browser: Browser, office: Office) =>
  attempt("axe finds nothing serious and nothing moderate in the chat of a visitor", async () => {
    const page = await newPage(browser)
    const wrong = new Set<string>()
    const look = async (name: string) => {
      for (const { colorScheme, width } of looks) {
        await page.setViewportSize({ width, height: 810 })
        await page.emulateMedia({ colorScheme, reducedMotion })
        for (const finding of await findingsIn(page, name)) wrong.add(finding)
      }
    }
    await page.goto(chatOf(office))
    await page.getByText("How can I help?").waitFor()
    await addAxe(page)
    await look("beginning")
    await page.getByRole("button", { name: "Are seats free?" }).click()
    await page.getByRole("button", { name: "Good answer" }).waitFor()
    await look("answer")
    await page.getByRole("button", { name: "Conversations and settings" }).click()
    for (const finding of await findingsIn(page, "conversations")) wrong.add(finding)
    await page.getByRole("button", { name: "New conversation" }).click()
    await page.getByText("How can I help?").waitFor()
    await page.getByLabel("Message").fill(invoice)
    await page.getByLabel("Message").press("Enter")
    await page.getByText("Please confirm").waitFor()
    await look("question")
    await page.getByRole("button", { name: "Delete" }).click()
    await look("deletion")
    await page.close()
    return verdict(wrong.size === 0, `${4 * looks.length + 1} looks, ${wrong.size} findings`, [...wrong])
  })

export const axeLines = async (browser: Browser, office: Office): Promise<ReadonlyArray<Line>> => [
  await screens(browser, office),
  await visitor(browser, office)
]
