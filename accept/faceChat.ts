/** A person who chats: an answer that is drawn while it streams, and what stays of it. */
import type { Browser, Page } from "playwright-core"
import { enter } from "./faceRuns.ts"
import type { Office } from "./gallerySite.ts"
import { picture, verdict } from "./studioBrowser.ts"
import { attempt, type Line } from "./support.ts"

const openChat = async (browser: Browser, office: Office): Promise<Page> => {
  const page = await enter(browser, office)
  await page.getByRole("link", { name: "Chat" }).click()
  await page.getByLabel("Message").waitFor()
  return page
}

const say = async (page: Page, text: string) => {
  await page.getByLabel("Message").fill(text)
  await page.getByLabel("Message").press("Enter")
}

/** Counts the frames without a text, from the first frame with it on. */
const watch = (text: string) => `
  window.missing = 0
  let isSeen = false
  const look = () => {
    const isThere = document.querySelector(".messages")?.textContent.includes(${JSON.stringify(text)})
    if (isSeen && !isThere) window.missing++
    isSeen ||= isThere
    requestAnimationFrame(look)
  }
  look()`

const streamed = (browser: Browser, office: Office) =>
  attempt(
    "an answer is drawn as Markdown while it streams, and stays when it is stopped and after a reload",
    async () => {
      const page = await openChat(browser, office)
      await say(page, "What is stored of a run? Tell it slowly.")
      const busy = page.locator('[aria-busy="true"]')
      await busy.locator("td", { hasText: "model_completed" }).waitFor()
      await page.getByRole("button", { name: "Stop" }).click()
      await page.getByText("stopped", { exact: true }).waitFor()
      const kept = await page.locator(".answer td").count()
      await page.reload()
      await page.locator(".answer td").first().waitFor()
      const reloaded = await page.locator(".answer td").count()
      await page.close()
      return verdict(
        kept >= 2 && kept === reloaded,
        `${kept} cells of the table after the stop, ${reloaded} after a reload`
      )
    }
  )

const kept = (browser: Browser, office: Office) =>
  attempt("the text before a call is in every frame from its first word on", async () => {
    const page = await openChat(browser, office)
    await page.evaluate(watch("I read the invoice"))
    await say(page, "Please pay the attached invoice if it matches an order.")
    await page.getByText("PO-7731", { exact: true }).first().waitFor()
    await page.getByRole("group", { name: /waits for you/ }).waitFor()
    const missing = await page.evaluate("window.missing")
    await picture(page, "face-chat")
    await page.close()
    return verdict(missing === 0, `${String(missing)} frames without it`)
  })

export const chatLines = async (browser: Browser, office: Office): Promise<ReadonlyArray<Line>> => [
  await streamed(browser, office),
  await kept(browser, office)
]
