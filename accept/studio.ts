/**
 * The studio in a browser: `npm run accept -- studio`. Screenshots of each screen, in both themes and at 800 pixels, are
 * written to the folder in `KERNAI_SCREENSHOTS`, or to one in the system's folder for temporary files.
 */
import { existsSync, mkdirSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { type Browser, chromium, type Page } from "playwright-core"
import { hostile, type Site, withSite } from "./studioSite.ts"
import { attempt, inFolder, type Line, node, ofFiles, tested } from "./support.ts"

const program = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync)

const shots = process.env["KERNAI_SCREENSHOTS"] ?? join(tmpdir(), "kernai-studio")

/** The page, opened with the token, and what went wrong in it. */
const open = async (browser: Browser, site: Site) => {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } })
  const wrong: Array<string> = []
  page.on("pageerror", ({ message }) => wrong.push(message))
  page.on("console", (message) => {
    if (/content security policy|trusted/i.test(message.text())) wrong.push(message.text())
  })
  page.on("request", (request) => {
    if (new URL(request.url()).hostname !== "127.0.0.1") wrong.push(`asks ${request.url()}`)
  })
  await page.goto(site.url)
  await page.getByRole("link", { name: "Runs" }).waitFor()
  return { page, wrong }
}

const goTo = (page: Page, address: string) => page.evaluate(`location.hash = ${JSON.stringify(address)}`)

const openRun = async (page: Page, runId: string) => {
  await goTo(page, `#/runs/${encodeURIComponent(runId)}`)
  await page.locator(".heading").waitFor()
}

const shown = (page: Page, text: string | RegExp) => page.getByText(text).first().waitFor({ timeout: 20_000 })

const ok = (figure: string) => ({ pass: true, figure })

/** Takes the picture of a screen in both themes, and on a narrow window. */
const picture = async (page: Page, name: string) => {
  for (const [suffix, width, colorScheme] of [
    ["light", 1280, "light"],
    ["dark", 1280, "dark"],
    ["narrow", 800, "light"]
  ] as const) {
    await page.setViewportSize({ width, height: 800 })
    await page.emulateMedia({ colorScheme })
    await page.screenshot({ path: join(shots, `${name}-${suffix}.png`) })
  }
  await page.setViewportSize({ width: 1280, height: 800 })
  await page.emulateMedia({ colorScheme: "light" })
}

const failedRun = (browser: Browser, site: Site) =>
  attempt("a failed skill shows in the tree, the banner and the events, and 'go to rev' selects it", async () => {
    const { page, wrong } = await open(browser, site)
    const runId = await site.submit("Is the seat free?")
    await openRun(page, runId)
    await shown(page, "That is all.")
    await page.locator(".node.error", { hasText: "book" }).waitFor()
    await page.keyboard.press("e")
    const at = await page.locator(".film output").textContent()
    await page.locator(".banner", { hasText: "skill failed" }).waitFor()
    await page.locator(".node.error", { hasText: "book" }).waitFor()
    // Two rows of 28 pixels: the list has the room that its rows need.
    const room = await page.locator(".tree .space").boundingBox()
    await picture(page, "run")
    for (const name of ["Blocks", "Events", "State", "Usage", "Explain"]) {
      await page.getByRole("tab", { name: new RegExp(`^${name}`) }).click()
      if (name === "Explain") await shown(page, "✕ skill failed")
      await picture(page, name.toLowerCase())
    }
    const state = await site.stateOf(runId)
    await page.close()
    return {
      pass: wrong.length === 0 && state?.status.type === "completed" && room?.height === 56,
      figure: `${at}; ${wrong.join("; ") || "no violation"}`
    }
  })

const approvals = (browser: Browser, site: Site) =>
  attempt(
    "a call is approved, denied and changed from the list; a second page that answers late changes nothing",
    async () => {
      const { page } = await open(browser, site)
      const other = await open(browser, site)
      const runs = []
      for (const question of ["Please pay 1", "Please pay 2", "Please pay 3"]) runs.push(await site.submit(question))
      for (const one of [page, other.page]) {
        await goTo(one, "#/approvals")
        await one.locator("article").nth(2).waitFor()
      }
      await picture(page, "approvals")
      await page.getByRole("button", { name: "approve" }).first().click()
      await page.locator("article").nth(2).waitFor({ state: "detached" })
      const late = other.page.getByRole("button", { name: "approve" })
      await page.getByRole("button", { name: "edit" }).first().click()
      await page.getByLabel("changed input").fill(`{"to":"Max","amount":1}`)
      await page.getByRole("button", { name: "approve the changed input" }).click()
      await page.locator("article").nth(1).waitFor({ state: "detached" })
      await page.getByLabel("Reason of a denial").fill("too much")
      await page.getByRole("button", { name: "deny" }).click()
      await shown(page, "Nothing waits for you")
      await Promise.all([
        late
          .first()
          .click({ timeout: 2_000 })
          .catch(() => undefined),
        other.page.waitForTimeout(300)
      ])
      const states = []
      for (const runId of runs) {
        await openRun(page, runId)
        await page.locator(".heading.completed").waitFor()
        states.push(await site.stateOf(runId))
      }
      const inputs = JSON.stringify(states.map((state) => state?.turns[0]?.completed[0]?.input))
      await Promise.all([page.close(), other.page.close()])
      return { pass: site.paid() === 2 && inputs.includes("Max"), figure: `paid ${site.paid()} of 3` }
    }
  )

const chat = (browser: Browser, site: Site) =>
  attempt("a chat streams, shows calls, asks before a payment, takes an upload and is stopped", async () => {
    const { page, wrong } = await open(browser, site)
    await page.getByRole("link", { name: "Chat" }).click()
    const say = async (text: string) => {
      await page.getByLabel("Message").fill(text)
      await page.getByRole("button", { name: "send" }).click()
    }
    await page.getByLabel("Message").waitFor()
    const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    await page.setInputFiles("input[type=file]", {
      name: "dot.png",
      mimeType: "image/png",
      buffer: Buffer.from(pixel, "base64")
    })
    await say("What is a fiber?")
    await page.locator(".bubble img").waitFor()
    await page.locator(".answer", { hasText: "light thread" }).waitFor()
    await page.getByRole("button", { name: "send" }).waitFor()
    await say("Please pay Eva")
    await page.getByRole("button", { name: "approve" }).click()
    await page.locator(".answer", { hasText: "That is all." }).waitFor()
    await page.getByRole("button", { name: "send" }).waitFor()
    await picture(page, "chat")
    await say("Please wait")
    await page.getByText("wait runs").waitFor()
    await page.getByRole("button", { name: "stop" }).click()
    await shown(page, "stopped")
    await page.reload()
    await page.locator(".exchange").nth(2).waitFor()
    await page.close()
    return {
      pass: site.stopped() === 1 && wrong.length === 0,
      figure: `3 questions, 1 stopped; ${wrong.join("; ") || "no violation"}`
    }
  })

const safety = (browser: Browser, site: Site) =>
  attempt("hostile text of a model stays text: no script, no request, no violation", async () => {
    const { page, wrong } = await open(browser, site)
    const runId = await site.submit(`hostile ${hostile}`)
    await openRun(page, runId)
    await page.locator(".heading.completed").waitFor()
    for (const name of ["Blocks", "Events", "State", "Conversation"]) {
      await page.getByRole("tab", { name: new RegExp(`^${name}`) }).click()
    }
    await shown(page, /window.hacked=1/)
    const hacked = await page.evaluate("window.hacked")
    await page.close()
    return { pass: hacked === undefined && wrong.length === 0, figure: wrong.join("; ") || "nothing ran" }
  })

const live = (browser: Browser, site: Site) =>
  attempt("a run arrives while it is looked at, and again after a reload, without a gap", async () => {
    const { page } = await open(browser, site)
    const runId = await site.submit("Please pay")
    await openRun(page, runId)
    await page.locator(".card.waiting").waitFor()
    await page.reload()
    await page.getByRole("button", { name: "approve" }).click()
    await page.locator(".heading.completed").waitFor()
    const state = await site.stateOf(runId)
    const at = await page.locator(".film output").textContent()
    await page.close()
    return { pass: at === `rev ${state?.revision} of ${state?.revision}`, figure: `${at}` }
  })

const fork = (browser: Browser, site: Site) =>
  attempt("a run is forked at a revision by the keyboard's place, and the original is untouched", async () => {
    const { page } = await open(browser, site)
    const runId = await site.submit("Is the seat free?")
    await openRun(page, runId)
    await page.locator(".heading.completed").waitFor()
    const before = await site.stateOf(runId)
    await page.keyboard.press("[")
    await page.getByRole("button", { name: /fork from rev/ }).click()
    await shown(page, "fork of")
    await page.locator(".heading.completed").waitFor()
    const after = await site.stateOf(runId)
    await page.close()
    return { pass: before?.revision === after?.revision, figure: `original at ${after?.revision}` }
  })

const keyboard = (browser: Browser, site: Site) =>
  attempt("the keyboard alone finds a run, its tabs and its revisions; rows have roles and names", async () => {
    const { page } = await open(browser, site)
    await page.locator("a.row").first().waitFor()
    await picture(page, "runs")
    await page.keyboard.press("j")
    await page.keyboard.press("Enter")
    await page.locator(".heading").waitFor()
    await page.keyboard.press("3")
    const grid = page.getByRole("treegrid", { name: "Events" })
    const count = await grid.getAttribute("aria-rowcount")
    await page.keyboard.press(",")
    const slider = await page.getByRole("slider", { name: "Revision" }).getAttribute("aria-valuetext")
    await page.keyboard.press("?")
    await page.getByRole("dialog", { name: "Keys" }).waitFor()
    await page.close()
    return { pass: Number(count) > 3 && /^revision \d+ of \d+/.test(slider ?? ""), figure: `${count} rows, ${slider}` }
  })

const exported = (browser: Browser, site: Site, folder: string) =>
  attempt("an exported file plays from the disk with the network off", async () => {
    const { page } = await open(browser, site)
    const runId = await site.submit("Is the seat free?")
    await openRun(page, runId)
    await page.locator(".heading.completed").waitFor()
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("link", { name: "export" }).click()
    ])
    const file = join(folder, "run.html")
    await download.saveAs(file)
    const live = await page.locator(".film output").textContent()
    const alone = await browser.newContext({ offline: true })
    const copy = await alone.newPage()
    await copy.goto(pathToFileURL(file).href)
    await copy.locator(".heading.completed").waitFor()
    const played = await copy.locator(".film output").textContent()
    await copy.keyboard.press("e")
    await copy.locator(".banner", { hasText: "skill failed" }).waitFor()
    await Promise.all([alone.close(), page.close()])
    return { pass: live === played, figure: `${played}` }
  })

const firstRun = (browser: Browser) =>
  attempt("'kernai studio' without a store shows a recorded run, without a key", async () => {
    const script = `
      const { spawn } = require("node:child_process")
      const child = spawn(process.execPath, ["--conditions=kernai-source", "src/cli/main.ts", "studio"], { stdio: ["ignore", "pipe", "ignore"], detached: true })
      child.stdout.once("data", (text) => { console.log(String(text).trim()); console.log(child.pid); child.unref(); child.stdout.destroy(); process.exit(0) })`
    const [url = "", pid = ""] = node(["--eval", script]).stdout.trim().split("\n")
    try {
      const page = await browser.newPage()
      await page.goto(url)
      await page.locator("a.row.completed").first().click()
      await page.locator(".heading.completed").waitFor()
      await page.close()
      return ok("completed")
    } finally {
      if (pid !== "") process.kill(Number(pid))
    }
  })

export const studio = async (): Promise<ReadonlyArray<Line>> => {
  const files = [
    ofFiles(tested, "only pages with the token of this start get data, and foreign ones nothing", [
      "test/studio/Studio.test.ts"
    ]),
    ofFiles(tested, "the state at each revision is the kernel's own fold, and blocks have their places", [
      "test/studio/journal.test.ts"
    ]),
    ofFiles(tested, "the page is at most 60 KiB and is built from its sources", ["test/studio/assets.test.ts"]),
    ofFiles(tested, "thirteen failures are explained by name", ["test/internal/state/failureCause.test.ts"])
  ]
  if (program === undefined) {
    return [
      ...files,
      { line: "the studio in a browser", pass: false, figure: "no Chromium here: apt-get install chromium" }
    ]
  }
  mkdirSync(shots, { recursive: true })
  const browser = await chromium.launch({ executablePath: program, args: ["--no-sandbox"] })
  try {
    const lines = await inFolder((folder) =>
      withSite(folder, async (site) => [
        await live(browser, site),
        await failedRun(browser, site),
        await safety(browser, site),
        await fork(browser, site),
        await keyboard(browser, site),
        await exported(browser, site, folder),
        await chat(browser, site),
        await firstRun(browser)
      ])
    )
    const asked = await inFolder((folder) => withSite(folder, (site) => approvals(browser, site)))
    return [...files, ...lines, asked, { line: "screenshots of each screen", pass: true, figure: shots }]
  } finally {
    await browser.close()
  }
}
