/** A person who chats: an answer that is drawn while it streams, and what stays of it; questions that are asked again. */
import { type AddressInfo, connect, createServer, type Socket } from "node:net"
import { join } from "node:path"
import type { Browser, Page } from "playwright-core"
import { enter } from "./faceRuns.ts"
import type { Office } from "./gallerySite.ts"
import { newPage, picture, shots, until, verdict } from "./studioBrowser.ts"
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

/** Waits until the field for the message holds a text. */
const holds = async (page: Page, text: string) => {
  const isThere = async () => (await page.getByLabel("Message").inputValue()) === text
  await until(isThere)
  if (!(await isThere())) throw new Error(`the field does not hold: ${text}`)
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
      await say(page, "What is stored of a run? Tell it at length.")
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

const branches = (browser: Browser, office: Office) =>
  attempt("a question is asked again and edited, and each variant keeps what followed it", async () => {
    const page = await openChat(browser, office)
    const answer = page.getByRole("button", { name: "Try again" })
    await say(page, "Are seats free?")
    await answer.waitFor()
    await say(page, "What is stored of a run?")
    await answer.nth(1).waitFor()
    await answer.first().click()
    await page.getByText("2 / 2").waitFor()
    const after = await page.locator(".exchange").count()
    await answer.waitFor()
    await page.getByRole("button", { name: "Edit the question" }).click()
    await page.getByLabel("Edited question").fill("What is stored of a run, in short?")
    await page.getByRole("button", { name: "Ask this instead" }).click()
    await page.getByText("3 / 3").waitFor()
    await page.locator(".answer table").waitFor()
    await picture(page, "face-branches")
    await page.getByRole("button", { name: "Previous variant" }).click()
    await page.getByText("2 / 3").waitFor()
    await page.getByRole("button", { name: "Previous variant" }).click()
    await page.locator(".exchange").nth(1).waitFor()
    await page.reload()
    await page.locator(".exchange").nth(1).waitFor()
    const first = await page.locator(".bubble").allTextContents()
    await page.close()
    const pass = after === 1 && first.join("|") === "Are seats free?|What is stored of a run?"
    return verdict(pass, `${after} question after the first was asked again; the first variant has ${first.length}`)
  })

const written = (browser: Browser, office: Office) =>
  attempt(
    "a draft outlives a reload, composing sends nothing, and a message waits until the run has ended",
    async () => {
      const page = await openChat(browser, office)
      const field = page.getByLabel("Message")
      await field.fill("What is stored of a run? Tell it slowly.")
      await page.reload()
      await holds(page, "What is stored of a run? Tell it slowly.")
      const composing = { key: "Enter", isComposing: true, bubbles: true }
      await field.dispatchEvent("keydown", composing)
      const composed = await page.locator(".exchange").count()
      await field.press("Enter")
      await page.locator('[aria-busy="true"]').waitFor()
      await say(page, "Are seats free?")
      await page.getByLabel("Waiting to be sent").getByText("Are seats free?").waitFor()
      await page.setInputFiles("input[type=file]", {
        name: "note.txt",
        mimeType: "text/plain",
        buffer: Buffer.from("1")
      })
      await page.getByText("note.txt").waitFor()
      await picture(page, "face-queue")
      await page.locator(".exchange").nth(1).locator(".answer td").first().waitFor()
      const asked = await page.locator(".bubble").allTextContents()
      await page.close()
      return verdict(
        composed === 0 && asked.length === 2,
        `${composed} sent while composing; asked: ${asked.join(" | ")}`
      )
    }
  )

const retried = (browser: Browser, office: Office) =>
  attempt("a failed answer has a button that continues its run, and an answer one that copies it", async () => {
    const page = await openChat(browser, office)
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"])
    await say(page, "What is the weather in Oslo?")
    const again = page.waitForRequest((request) => request.url().endsWith("/retry"))
    await page.getByRole("button", { name: "Continue" }).click()
    await again
    await page.getByRole("button", { name: "Continue" }).waitFor()
    await say(page, "Are seats free?")
    await page.getByRole("button", { name: "Copy", exact: true }).click()
    await page.getByText("Copied").waitFor()
    const copied = String(await page.evaluate("navigator.clipboard.readText()"))
    await page.close()
    return verdict(copied === "The seat is taken.", copied)
  })

const history = (browser: Browser, office: Office) =>
  attempt("a conversation is found by a later question, and a phone shows the field and its button", async () => {
    const page = await openChat(browser, office)
    await page.getByLabel("Search conversations").fill("weather")
    const hits = page.locator(".chat aside li a")
    await hits.filter({ hasText: "weather" }).waitFor()
    await hits.filter({ hasText: "stored" }).first().waitFor({ state: "detached" })
    await page.getByLabel("Search conversations").fill("stored short")
    await hits.filter({ hasText: "in short" }).click()
    await page.locator(".answer table").waitFor()
    await page.getByLabel("Search conversations").fill("")
    await picture(page, "face-history")
    await page.setViewportSize({ width: 380, height: 760 })
    await page.screenshot({ path: join(shots, "face-history-phone.png") })
    await page.getByRole("button", { name: "Conversations and settings" }).click()
    await hits.first().waitFor()
    await page.screenshot({ path: join(shots, "face-sheet-phone.png") })
    await page.keyboard.press("Escape")
    const bottom = (await page.getByRole("button", { name: "Send" }).boundingBox()) ?? { y: Infinity, height: 0 }
    const asked = await page.locator(".bubble").allTextContents()
    await page.close()
    const pass = bottom.y + bottom.height <= 760 && asked.join() === "What is stored of a run, in short?"
    return verdict(pass, `${asked.join()}; the button ends at ${Math.round(bottom.y + bottom.height)} of 760 pixels`)
  })

const conversation = (browser: Browser, office: Office) =>
  attempt("a conversation is renamed, shared as a file that works alone, and deleted", async () => {
    const page = await openChat(browser, office)
    await say(page, "Are seats free?")
    await page.getByRole("button", { name: "Good answer" }).click()
    await page.locator('[aria-label="Good answer"][aria-pressed=true]').waitFor()
    await page.reload()
    await page.locator('[aria-label="Good answer"][aria-pressed=true]').waitFor()
    await page.getByRole("button", { name: "Rename" }).click()
    await page.getByLabel("Name", { exact: true }).fill("Seats of Friday")
    await page.getByRole("dialog").getByRole("button", { name: "Rename" }).click()
    const line = page.locator(".chat aside li a", { hasText: "Seats of Friday" })
    await line.waitFor()
    await picture(page, "face-named")
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "Share" }).click()])
    const path = join(shots, "face-shared.html")
    await file.saveAs(path)
    const shared = await newPage(browser)
    await shared.goto(`file://${path}`)
    await shared.getByText("The seat is taken.").first().waitFor()
    await shared.close()
    await page.getByRole("button", { name: "Delete" }).click()
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click()
    await page.getByText("Deleted", { exact: true }).waitFor()
    await line.waitFor({ state: "detached" })
    const left = await page.locator(".exchange").count()
    await page.close()
    return verdict(left === 0, `${left} questions are left`)
  })

/** Stands for a browser that recognizes speech on the device. */
const listener = `
  window.SpeechRecognition = class {
    static available = async ({ processLocally }) => (processLocally ? "available" : "unavailable")
    start() {
      const said = this.processLocally ? "seats free?" : "heard elsewhere"
      setTimeout(() => {
        this.onresult({ results: [[{ transcript: said }]] })
        this.onend()
      }, 50)
    }
    stop() {}
  }`

const spoken = (browser: Browser, office: Office) =>
  attempt("a message is spoken where the browser recognizes speech on the device", async () => {
    const page = await openChat(browser, office)
    const without = await page.getByRole("button", { name: "Speak" }).count()
    await page.addInitScript(listener)
    await page.reload()
    await page.getByLabel("Message").fill("Are")
    await page.getByRole("button", { name: "Speak" }).click()
    await holds(page, "Are seats free?")
    await page.close()
    return verdict(without === 0, `${without} buttons in a browser that asks a server`)
  })

/** A door to a server that can be shut, as while the server restarts. */
const doorTo = (port: number) => {
  const sockets = new Set<Socket>()
  const door = createServer((socket) => {
    const other = connect(port, "127.0.0.1")
    for (const one of [socket, other]) {
      sockets.add(one)
      one.on("error", () => undefined)
      one.on("close", () => {
        sockets.delete(one)
        socket.destroy()
        other.destroy()
      })
    }
    socket.pipe(other).pipe(socket)
  })
  const open = (at: number) => new Promise<void>((resolve) => door.listen(at, "127.0.0.1", resolve))
  const shut = () => {
    door.close()
    for (const socket of sockets) socket.destroy()
  }
  return { open, shut, port: () => (door.address() as AddressInfo).port }
}

const reconnected = (browser: Browser, office: Office) =>
  attempt("a page that loses its server says so, and goes on by itself once the server is there", async () => {
    const url = new URL(office.url)
    const door = doorTo(Number(url.port))
    await door.open(0)
    const port = door.port()
    url.port = String(port)
    const page = await openChat(browser, { ...office, url: url.href })
    await say(page, "What is stored of a run? Tell it slowly.")
    await page.locator('[aria-busy="true"]').waitFor()
    door.shut()
    await page.getByText("reconnecting").waitFor()
    await picture(page, "face-reconnecting")
    await door.open(port)
    await page.getByRole("button", { name: "Try again" }).waitFor()
    const cells = await page.locator(".answer td").count()
    const said = await page.getByText("reconnecting").count()
    await page.close()
    door.shut()
    return verdict(cells === 4 && said === 0, `${cells} cells of the table`)
  })

export const chatLines = async (browser: Browser, office: Office): Promise<ReadonlyArray<Line>> => [
  await streamed(browser, office),
  await kept(browser, office),
  await branches(browser, office),
  await written(browser, office),
  await retried(browser, office),
  await history(browser, office),
  await conversation(browser, office),
  await spoken(browser, office),
  await reconnected(browser, office)
]
