/** An end user: the chat in the frame of another site's page, without words of developers. */
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import type { Browser, Page } from "playwright-core"
import type { Office } from "./gallerySite.ts"
import { newPage, shots, verdict } from "./studioBrowser.ts"
import { attempt, type Line } from "./support.ts"

/** Returns the address of the chat of visitors. */
export const chatOf = (office: Office): string => `${new URL(office.url).origin}/chat`

/** A page with a strict policy that shows the chat in a frame. */
const shop = (chat: string): Promise<Server> =>
  new Promise((resolve) => {
    const server = createServer((_, response) => {
      response.setHeader("content-type", "text/html")
      response.setHeader("content-security-policy", `default-src 'none'; frame-src ${new URL(chat).origin}`)
      response.end(
        `<!doctype html><title>Shop</title><iframe title="Support" src="${chat}" width="420" height="600" sandbox="allow-scripts allow-same-origin allow-forms"></iframe>`
      )
    })
    server.listen(0, "127.0.0.1", () => resolve(server))
  })

const portOf = (server: Server): number => (server.address() as AddressInfo).port

const watched = async (browser: Browser) => {
  const page = await newPage(browser)
  const wrong: Array<string> = []
  page.on("pageerror", ({ message }) => wrong.push(message))
  page.on("console", (message) => {
    if (/content security policy|trusted|refused/i.test(message.text())) wrong.push(message.text())
  })
  return { page, wrong }
}

const developers = ["coordinator", "extractor", "find_order", "{", "claude", "journal", "open the run", "dialect"]

const framed = (browser: Browser, office: Office) =>
  attempt("the chat works in a frame of another site with a strict policy, without words of developers", async () => {
    const server = await shop(chatOf(office))
    const { page, wrong } = await watched(browser)
    try {
      await page.goto(`http://localhost:${portOf(server)}/`)
      const chat = page.frameLocator("iframe")
      await chat.getByRole("button", { name: "Are seats free?" }).click()
      await chat.getByText("The seat is taken.").waitFor()
      await chat.getByRole("button", { name: "Good answer" }).click()
      await chat.getByText("Thank you").waitFor()
      await chat.getByRole("button", { name: "Conversations and settings" }).click()
      await chat.getByRole("button", { name: "New conversation" }).click()
      await chat.getByText("How can I help?").waitFor()
      await chat.getByLabel("Message").fill("Please pay the attached invoice if it matches an order.")
      await chat.getByLabel("Message").press("Enter")
      await chat.getByText("Please confirm").waitFor()
      const lengths = await chat.getByText(/\d characters/).count()
      const copies = await chat.getByRole("button", { name: "Copy" }).count()
      await page.screenshot({ path: join(shots, "guest-frame.png") })
      await chat.getByRole("button", { name: "Confirm", exact: true }).click()
      await chat.getByText("is paid").waitFor()
      const text = (await chat.locator("body").innerText()).toLowerCase()
      const said = developers.filter((word) => text.includes(word))
      await page.reload()
      await chat.getByRole("button", { name: "Conversations and settings" }).click()
      await chat.getByRole("link", { name: "Are seats free?" }).click()
      await chat.getByText("The seat is taken.").waitFor()
      return verdict(
        said.length === 0 && lengths === 0 && copies === 0,
        `words of developers: ${said.join(", ") || "none"}; while it waits ${lengths} lengths and ${copies} copies`,
        wrong
      )
    } finally {
      server.close()
      await page.close()
    }
  })

const refused = (browser: Browser, office: Office) =>
  attempt("a page that is not named cannot frame the chat", async () => {
    const server = await shop(chatOf(office))
    const { page } = await watched(browser)
    try {
      const violation = page.waitForEvent("console", (message) => /frame-ancestors/.test(message.text()))
      await page.goto(`http://shop.localhost:${portOf(server)}/`)
      await violation
      const count = await page.frameLocator("iframe").getByLabel("Message").count()
      return verdict(count === 0, `${count} fields for a message`)
    } finally {
      server.close()
      await page.close()
    }
  })

const pictures = async (page: Page) => {
  for (const [width, height] of [
    [1440, 800],
    [800, 800],
    [380, 760]
  ] as const) {
    await page.setViewportSize({ width, height })
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme })
      await page.screenshot({ path: join(shots, `guest-${width}-${colorScheme}.png`) })
    }
  }
}

const alone = (browser: Browser, office: Office) =>
  attempt("a visitor's conversations stay their own, with their colors", async () => {
    const { page, wrong } = await watched(browser)
    await page.goto(chatOf(office))
    await page.getByText("How can I help?").waitFor()
    await page.screenshot({ path: join(shots, "guest-start.png") })
    await page.getByLabel("Message").fill("What is stored of a run?")
    await page.getByRole("button", { name: "Send" }).click()
    await page.locator(".answer table").waitFor()
    await page.getByRole("button", { name: "Try again" }).waitFor()
    await pictures(page)
    const others = await page.locator(".chat aside li a").count()
    const accent = await page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--accent')")
    await page.close()
    return verdict(
      others === 1 && String(accent).includes("155"),
      `${others} conversation, accent ${String(accent)}`,
      wrong
    )
  })

export const guestLines = async (browser: Browser, office: Office): Promise<ReadonlyArray<Line>> => [
  await framed(browser, office),
  await refused(browser, office),
  await alone(browser, office)
]
