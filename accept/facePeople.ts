/** People who decide: many approvals by keys, and an answer that is taken back. */
import type { Browser } from "playwright-core"
import { enter } from "./faceRuns.ts"
import type { Office } from "./gallerySite.ts"
import { verdict } from "./studioBrowser.ts"
import { attempt, type Line } from "./support.ts"

const until = async (isDone: () => Promise<boolean>) => {
  for (let tries = 0; tries < 200 && !(await isDone()); tries++)
    await new Promise((resolve) => setTimeout(resolve, 100))
}

const twenty = (browser: Browser, office: Office) =>
  attempt("20 approvals take 40 keys, each with the question of its user, and no place is lost", async () => {
    const ids: Array<string> = []
    for (let at = 1; at <= 20; at++) ids.push(await office.submit(`Please pay bill ${at} of twenty`))
    const page = await enter(browser, office)
    await page.evaluate(`location.hash = "#/questions"`)
    const bills = page.locator("article.question", { hasText: "of twenty" })
    await bills.nth(19).waitFor()
    await bills.first().locator("[data-row]").focus()
    for (let at = 0; at < 20; at++) for (const key of ["a", "a"]) await page.keyboard.press(key)
    const statuses = async () => (await Promise.all(ids.map(office.headOf))).map((head) => head?.status.type)
    await until(async () => (await statuses()).every((status) => status === "completed"))
    const done = (await statuses()).filter((status) => status === "completed").length
    await page.close()
    return verdict(done === 20, `${done} of 20 completed`)
  })

const undo = (browser: Browser, office: Office) =>
  attempt("an answer is taken back before it is sent, and sent at once when the page is left", async () => {
    const id = await office.submit("Please pay the undone bill")
    const page = await enter(browser, office)
    await page.evaluate(`location.hash = "#/questions"`)
    const bill = page.locator("article.question", { hasText: "the undone bill" })
    await bill.getByRole("button", { name: "Approve" }).click()
    await bill.getByRole("button", { name: "Undo" }).click()
    await bill.getByRole("button", { name: "Deny" }).waitFor()
    await page.waitForTimeout(5_500)
    const before = (await office.headOf(id))?.status.type
    await bill.getByRole("button", { name: "Approve" }).click()
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
    const listed = page.locator("article.question", { hasText: "Please pay PayPal" })
    await listed.getByText("Look alike, but differ").waitFor()
    const words = await listed.locator(".twin").allTextContents()
    await page.evaluate(`location.hash = "#/runs/${id}"`)
    await page.locator(".questions").getByText("Look alike, but differ").waitFor()
    await page.close()
    return verdict(words.join() === "PayPal,PayPaI", words.join(" and "))
  })

export const peopleLines = async (browser: Browser, office: Office): Promise<ReadonlyArray<Line>> => [
  await lookalike(browser, office),
  await twenty(browser, office),
  await undo(browser, office)
]
