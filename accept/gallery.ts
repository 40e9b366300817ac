/**
 * The pictures of `docs/gallery`: `node --conditions=kernai-source accept/gallery.ts`. Each screen of the studio in both
 * themes, over the runs of `gallerySite.ts`.
 */
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import type { Page } from "playwright-core"
import { launch } from "../bench/chromium.ts"
import { experiments } from "./faceEvaluate.ts"
import { fill } from "./filledStore.ts"
import { chatPictures, takeChats, takeThemes } from "./galleryChat.ts"
import { type Ids, type Office, officeQuestions, submitAll, withOffice } from "./gallerySite.ts"
import { inFolder, root } from "./support.ts"

/** A screen of the gallery. */
export interface Shot {
  readonly name: string
  readonly address: (ids: Ids) => string
  /** What a person does on it first. */
  readonly act?: (page: Page) => Promise<unknown>
}

const ofRun = (id: string | undefined, query = "") => `#/runs/${encodeURIComponent(id ?? "")}${query}`

/** Plays a turn twice after another result, with another model. */
const play = async (page: Page): Promise<void> => {
  await page.getByLabel("The result of book").fill("12A is booked")
  await page.getByLabel("Model").selectOption({ index: 2 })
  await page.getByLabel("Times").selectOption("2")
  await page.getByRole("button", { name: "Play" }).click()
  await page.getByRole("article", { name: "Played" }).filter({ hasText: "Completed" }).nth(1).waitFor()
}

const drawn = (page: Page) => page.locator(".chart canvas").waitFor()

export const shots: ReadonlyArray<Shot> = [
  { name: "runs", address: () => "#/" },
  { name: "run", address: ({ invoice }) => ofRun(invoice) },
  { name: "answer", address: ({ guide }) => ofRun(guide) },
  { name: "explain", address: ({ limited }) => ofRun(limited, "?tab=Explain") },
  { name: "blocks", address: ({ invoice }) => ofRun(invoice, "?tab=Blocks") },
  { name: "events", address: ({ seats }) => ofRun(seats, "?tab=Events") },
  { name: "state", address: ({ seats }) => ofRun(seats, "?tab=State") },
  { name: "usage", address: ({ invoice }) => ofRun(invoice, "?tab=Usage") },
  { name: "approvals", address: () => "#/questions" },
  { name: "operate", address: () => "#/operate" },
  { name: "evaluate", address: () => "#/evaluate" },
  { name: "experiment", address: () => "#/evaluate", act: (page) => page.locator(".experiments a").first().click() },
  {
    name: "compare",
    address: ({ seats, small }) => `#/compare/${encodeURIComponent(seats ?? "")}/${encodeURIComponent(small ?? "")}`
  },
  {
    name: "comparison",
    address: ({ guide, limited, poem, seats }) =>
      `#/compare/${[seats, guide, poem, limited].map((id = "") => encodeURIComponent(id)).join("/")}`
  },
  { name: "playground", address: ({ seats }) => `#/play/${encodeURIComponent(seats ?? "")}`, act: play },
  { name: "chat", address: () => "#/chat/coordinator/gallery" },
  { name: "keys", address: () => "#/", act: (page) => page.keyboard.press("?") },
  { name: "overview", address: () => "#/overview?range=24h", act: drawn },
  { name: "spending", address: () => "#/overview?range=24h&chart=cost", act: drawn }
]

const hour = 3_600_000

/** Adds the runs of a day to the store of the office, whose overview shows them. */
const fillDay = (office: Office): void =>
  fill(office.store, {
    runs: 480,
    from: Date.now() - 23 * hour,
    to: Date.now() - hour / 2,
    swing: 0.6,
    agents: ["coordinator", "support", "research"],
    models: ["anthropic/claude-sonnet-4", "openai/gpt-5-mini", "gemini/gemini-2.5-flash"]
  })

/** The screens of the gallery, each in both themes, and the run on a phone. */
const shown = new Set([
  "runs",
  "run",
  "answer",
  "explain",
  "approvals",
  "operate",
  "evaluate",
  "compare",
  "comparison",
  "playground",
  "overview",
  "spending"
])

export const pictures: ReadonlyArray<string> = [
  ...Array.from(shown, (name) => [`${name}-light.png`, `${name}-dark.png`]).flat(),
  "run-phone.png",
  ...chatPictures
]

const take = async (): Promise<void> => {
  const folder = join(root, "docs/gallery")
  mkdirSync(folder, { recursive: true })
  const browser = await launch()
  try {
    await inFolder((place) =>
      withOffice(place, async (office) => {
        const ids = await submitAll(office, officeQuestions)
        experiments(office, [2, 3, 3, 4, 3, 4, 4, 2])
        await takeChats(browser, office, folder)
        const page = await browser.newPage({ viewport: { width: 1200, height: 700 } })
        await page.goto(office.url)
        for (const { act, address, name } of shots.filter((shot) => shown.has(shot.name))) {
          if (name === "overview") fillDay(office)
          await page.evaluate(`location.hash = ${JSON.stringify(address(ids))}`)
          await page.waitForTimeout(400)
          await act?.(page)
          await takeThemes(page, name, folder)
        }
        await page.setViewportSize({ width: 380, height: 760 })
        await page.emulateMedia({ colorScheme: "light" })
        await page.evaluate(`location.hash = ${JSON.stringify(ofRun(ids.invoice))}`)
        await page.waitForTimeout(600)
        await page.screenshot({ path: join(folder, "run-phone.png") })
      })
    )
  } finally {
    await browser.close()
  }
}

if (import.meta.main) await take()
