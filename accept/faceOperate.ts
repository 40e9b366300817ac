/** The screen of an operator: what needs somebody, requeued and deleted by policy. */
import type { Browser } from "playwright-core"
import { enter } from "./faceRuns.ts"
import type { Office } from "./gallerySite.ts"
import { officeQuestions, submitAll } from "./gallerySite.ts"
import { goTo, verdict } from "./studioBrowser.ts"
import { attempt, type Line } from "./support.ts"

const requeued = (browser: Browser, office: Office) =>
  attempt("runs that need somebody are counted by need, agent and version, and requeued", async () => {
    const page = await enter(browser, office)
    await page.getByRole("link", { name: "Operate" }).click()
    const failed = page.locator("tbody tr", { hasText: "Failed" })
    const [agent, version, count] = await failed
      .first()
      .locator("td")
      .allTextContents()
      .then((cells) => cells.slice(1))
    const waiting = page.locator("tbody tr", { hasText: "Waiting" }).getByRole("link", { name: "Approvals" })
    await waiting.waitFor()
    await page.getByRole("button", { name: "Requeue failed runs of coordinator" }).first().click()
    await page.getByText(/Offered [1-9]\d* runs? to workers again/).waitFor()
    await page.getByLabel("Filter by agent, version and tenant").fill("version:5")
    await page.getByText("No run needs anybody").waitFor()
    const { hash } = new URL(page.url())
    await page.close()
    return verdict(
      agent === "coordinator" && version === "4" && Number(count) > 0 && hash === "#/operate?q=version%3A5",
      `${count} failed runs of ${agent} ${version}, ${hash}`
    )
  })

const pruned = (browser: Browser, office: Office) =>
  attempt("the cancelled runs of one tenant are deleted, and nothing else", async () => {
    const leaving = { id: "eva", tenant: "leaving" }
    const ids = await Promise.all(["one", "two"].map((word) => office.submit(`Please pay ${word}`, leaving)))
    const kept = await office.submit("Please pay three", { id: "ada", tenant: "acme" })
    const page = await enter(browser, office)
    await goTo(page, "#/?q=tenant:leaving")
    await page.locator(".row", { hasText: "Please pay three" }).waitFor({ state: "detached" })
    await page.locator(".row.waiting").nth(1).waitFor()
    await page.getByLabel("Select all").check()
    await page.getByRole("button", { name: "Cancel 2" }).click()
    await page.getByText("Cancelled 2 runs").waitFor()
    await goTo(page, "#/operate?q=tenant:leaving")
    await page.getByText("No run needs anybody").waitFor()
    await page.getByRole("button", { name: "Delete old runs" }).click()
    const box = page.getByRole("dialog", { name: "Delete old runs" })
    await box.getByText("of the tenant leaving").waitFor()
    await box.getByLabel("status").selectOption("cancelled")
    await box.getByLabel("unchanged for days").fill("0")
    await box.getByRole("button", { name: "Delete" }).click()
    await page.getByText("Deleted 2 runs").waitFor()
    await page.close()
    const heads = await Promise.all([...ids, kept].map(office.headOf))
    const left = heads.map((head) => head?.status.type ?? "gone")
    return verdict(left.slice(0, 2).every((one) => one === "gone") && left[2] !== "gone", left.join(", "))
  })

export const operateLines = async (browser: Browser, office: Office): Promise<ReadonlyArray<Line>> => {
  await submitAll(office, officeQuestions)
  return [await requeued(browser, office), await pruned(browser, office)]
}
