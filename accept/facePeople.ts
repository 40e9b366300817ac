/** People who decide: many approvals by keys, and an answer that is taken back. */
import type { Browser } from "playwright-core"
import { enter } from "./faceRuns.ts"
import type { Office } from "./gallerySite.ts"
import { until, verdict } from "./studioBrowser.ts"
import { attempt, type Line } from "./support.ts"

const twenty = (browser: Browser, office: Office) =>
  attempt("20 approvals take 40 keys, each with the question of its user, and no place is lost", async () => {
    const ids: Array<string> = []
    for (let at = 1; at <= 20; at++) ids.push(await office.submit(`Please pay bill ${at} of twenty`))
    const page = await enter(browser, office)
    await page.evaluate(`location.hash = "#/questions"`)
    await page.getByLabel("Decided by").fill("Ada Lovelace")
    const bills = page.locator(".queue [data-row]", { hasText: "of twenty" })
    await bills.nth(19).waitFor()
    await bills.first().focus()
    for (let at = 0; at < 20; at++) for (const key of ["a", "a"]) await page.keyboard.press(key)
    const statuses = async () => (await Promise.all(ids.map(office.headOf))).map((head) => head?.status.type)
    await until(async () => (await statuses()).every((status) => status === "completed"))
    const done = (await statuses()).filter((status) => status === "completed").length
    await page.evaluate(`location.hash = "#/runs/${ids[19]}"`)
    await page.getByText("approved by Ada Lovelace (studio)").first().waitFor()
    await page.close()
    return verdict(done === 20, `${done} of 20 completed, signed by Ada Lovelace`)
  })

const undo = (browser: Browser, office: Office) =>
  attempt("an answer is taken back before it is sent, and sent at once when the page is left", async () => {
    const id = await office.submit("Please pay the undone bill")
    const page = await enter(browser, office)
    await page.evaluate(`location.hash = "#/questions"`)
    await page.locator(".queue [data-row]", { hasText: "the undone bill" }).click()
    const bill = page.locator("article.question", { hasText: "the undone bill" })
    const approve = bill.getByRole("button", { name: "Approve", exact: true })
    await approve.click()
    await bill.getByRole("button", { name: "Undo" }).click()
    await approve.waitFor()
    await page.waitForTimeout(5_500)
    const before = (await office.headOf(id))?.status.type
    await approve.click()
    await bill.getByRole("button", { name: "Undo" }).waitFor()
    await page.goto("about:blank")
    await until(async () => (await office.headOf(id))?.status.type === "completed")
    const after = (await office.headOf(id))?.status.type
    await page.close()
    return verdict(before === "waiting" && after === "completed", `${before} after the undo, ${after} after leaving`)
  })

const lookalike = (browser: Browser, office: Office) =>
  attempt("an approval names a payee that only looks like the one of the question", async () => {
    const id = await office.submit("Please pay PayPal 80 EUR")
    const page = await enter(browser, office)
    await page.evaluate(`location.hash = "#/questions"`)
    await page.locator(".queue [data-row]", { hasText: "Please pay PayPal" }).click()
    const listed = page.locator("article.question", { hasText: "Please pay PayPal" })
    await listed.getByText("Look alike, but differ").waitFor()
    const words = await listed.locator(".twin").allTextContents()
    await page.evaluate(`location.hash = "#/runs/${id}"`)
    await page.locator(".questions").getByText("Look alike, but differ").waitFor()
    await page.close()
    return verdict(words.join() === "PayPal,PayPaI", words.join(" and "))
  })

const equal = (browser: Browser, office: Office) =>
  attempt("equal calls of one skill are decided at once, those that differ stay, and one is taken back", async () => {
    const ids: Array<string> = []
    for (const at of [1, 2, 3]) ids.push(await office.submit(`Please pay equal bill ${at}`))
    const other = await office.submit("Please pay PayPal for the unequal bill")
    const page = await enter(browser, office)
    await page.clock.install()
    await page.evaluate(`location.hash = "#/questions"`)
    await page.locator(".queue [data-row]", { hasText: "equal bill 3" }).click()
    await page.getByText(/calls of this skill wait with the same input/).waitFor()
    // The moment in which decisions are taken back passes when the walk says so.
    await page.clock.pauseAt(Date.now() + 60_000)
    await page.getByRole("button", { name: /^Approve all/ }).click()
    await page.locator(".queue .decided", { hasText: "equal bill 3" }).click()
    await page.locator("article.question").getByRole("button", { name: "Undo" }).click()
    await page.clock.resume()
    const statuses = async () =>
      (await Promise.all([...ids, other].map(office.headOf))).map((head) => head?.status.type)
    await until(async () => (await statuses()).filter((status) => status === "completed").length >= 2)
    const found = await statuses()
    await page.close()
    return verdict(found.join() === "completed,completed,waiting,waiting", found.join(", "))
  })

export const peopleLines = async (browser: Browser, office: Office): Promise<ReadonlyArray<Line>> => [
  await lookalike(browser, office),
  await twenty(browser, office),
  await undo(browser, office),
  await equal(browser, office)
]
