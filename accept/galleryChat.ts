/** The pictures of the chats in `docs/gallery`: `node --conditions=kernai-source accept/galleryChat.ts` takes these alone. */
import { join } from "node:path"
import type { Browser, Page } from "playwright-core"
import { launch } from "../bench/chromium.ts"
import { invoice, type Office, withOffice } from "./gallerySite.ts"
import { inFolder, root } from "./support.ts"

export const chatPictures: ReadonlyArray<string> = [
  "chat-light.png",
  "chat-dark.png",
  "chat-phone.png",
  "visitor-light.png",
  "visitor-dark.png",
  "visitor-phone.png"
]

/** Asks a question, and waits for a text of its answer. */
const ask = async (page: Page, question: string, answer: string) => {
  await page.getByLabel("Message").fill(question)
  await page.getByRole("button", { name: "Send" }).click()
  await page.getByText(answer).first().waitFor()
}

const newConversation = async (page: Page) => {
  await page.getByRole("button", { name: "New conversation" }).click()
  await page.locator(".exchange").first().waitFor({ state: "detached" })
}

/** Takes a screen in both themes. */
export const takeThemes = async (page: Page, name: string, folder: string) => {
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme })
    await page.waitForTimeout(600)
    await page.screenshot({ path: join(folder, `${name}-${colorScheme}.png`) })
  }
}

/** Takes a chat in both themes, and on a phone. */
const inThemes = async (page: Page, name: string, folder: string) => {
  // Toasts and the focus of the field are not of the picture.
  await page.locator(".toast").waitFor({ state: "detached" })
  await page.evaluate("document.activeElement?.blur()")
  await takeThemes(page, name, folder)
  await page.setViewportSize({ width: 380, height: 760 })
  await page.emulateMedia({ colorScheme: "light" })
  await page.waitForTimeout(400)
  await page.screenshot({ path: join(folder, `${name}-phone.png`) })
}

/** Takes the chat of the studio and that of a visitor. */
export const takeChats = async (browser: Browser, office: Office, folder: string): Promise<void> => {
  const options = { viewport: { width: 1200, height: 760 } }
  const page = await browser.newPage(options)
  await page.goto(office.url)
  await page.getByRole("link", { name: "Chat" }).click()
  await ask(page, "What is stored of a run?", "at every revision")
  await page.getByRole("button", { name: "Good answer" }).click()
  await newConversation(page)
  await ask(page, invoice, "waits for you")
  await inThemes(page, "chat", folder)
  await page.close()
  const visitor = await browser.newPage(options)
  await visitor.goto(`${new URL(office.url).origin}/chat`)
  await ask(visitor, "Are seats free?", "The seat is taken")
  await newConversation(visitor)
  await ask(visitor, invoice, "Please confirm")
  await inThemes(visitor, "visitor", folder)
  await visitor.close()
}

if (import.meta.main) {
  const browser = await launch()
  const folder = process.argv[2] ?? join(root, "docs/gallery")
  await inFolder((place) => withOffice(place, (office) => takeChats(browser, office, folder)))
  await browser.close()
}
