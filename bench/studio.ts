/**
 * The page of the studio over runs of 10,000 and 100,000 events, in Chromium, beside the empty page and beside a page that
 * has a row for every event in its document.
 *
 * The work of the page for a frame and for a key is limited in CPU time of its main thread, and so is the wall time, where
 * a page that stands still keeps its frames: on a machine that is busy with other things no page does.
 */
import type { Browser, Page } from "playwright-core"
import { launch } from "./chromium.ts"
import { bestFrame, bestKey, firstPaint, heap, longestFrame, scrollCpu, type Worst } from "./studioPage.ts"
import * as Site from "./studioSite.ts"
import { compare, type Comparison, ratioRow, type Row, row } from "./support.ts"

const list = ".body .rows"
const first = `${list} .virtual`
const frameLimit = 34

/** What was measured of a run. */
interface Figures {
  /** The longest frame of a page that stands still, before and after. */
  readonly still: number
  readonly first: number
  readonly frame: number
  readonly frameCpu: number
  readonly key: Worst
  readonly heap: number
}

/** Measures the events tab of a run. */
const figuresOf = async (page: Page, open: () => Promise<number>, last: number): Promise<Figures> => {
  const before = await longestFrame(page, "nothing")
  const times: Array<number> = []
  while (times.length < 5) times.push(await open())
  await page.waitForFunction(
    (last) => document.querySelector(".film output")?.textContent?.endsWith(`of ${last}`),
    last,
    { timeout: 120_000 }
  )
  const frame = await bestFrame(page, list, 8, frameLimit)
  const frameCpu = Math.min(await scrollCpu(page, list), await scrollCpu(page, list))
  const key = await bestKey(page)
  const still = Math.max(before, await longestFrame(page, "nothing"))
  return { still, first: Math.min(...times), frame, frameCpu, key, heap: await heap(page) }
}

/** The most of each figure. */
interface Bars {
  readonly first: number
  readonly key: number
  readonly heap: number | null
}

/** Wall times are judged where a page that stands still keeps its frames. */
const rowsOf = (id: string, events: string, figures: Figures, bars: Bars): ReadonlyArray<Row> => {
  const { first, frame, frameCpu, heap, key, still } = figures
  const wall = (name: string, what: string, value: number, bound: number) =>
    still <= frameLimit
      ? row(`${id}.${name}`, `${events}: ${what}`, value, bound)
      : row(
          `${id}.${name}`,
          `${events}: ${what} (not judged: a still page has one of ${still.toFixed(0)})`,
          value,
          null
        )
  return [
    wall("first", "ms to the first paint", first, bars.first),
    wall("frame", "ms of the longest of 300 frames while scrolling", frame, frameLimit),
    row(`${id}.frame.cpu`, `${events}: CPU ms of the longest step of scrolling`, frameCpu, frameLimit),
    wall("key", "ms from the slowest of 20 keys to its frame", key.wall, bars.key),
    row(
      `${id}.key.cpu`,
      `${events}: CPU ms of the slowest of 20 keys, over a key that does nothing`,
      key.cpu,
      bars.key
    ),
    row(`${id}.heap`, `${events}: MB of heap of the page`, heap, bars.heap)
  ]
}

/** Compares the lowest times of both sides, since what else runs on the machine only adds to a time. */
const compareLowest = async (
  ours: () => Promise<number>,
  peer: () => Promise<number>,
  rounds: number
): Promise<Comparison> => {
  const lowest = { ours: Infinity, peer: Infinity }
  for (let round = 0; round < rounds; round++) {
    lowest.ours = Math.min(lowest.ours, await ours())
    lowest.peer = Math.min(lowest.peer, await peer())
  }
  return { ...lowest, ratio: lowest.ours / lowest.peer }
}

const opener = (page: Page, site: Site.Site, runId: string) => () =>
  firstPaint(page, `${site.origin}/#/runs/${runId}?tab=Events`, first)

const ofShort = async (page: Page, site: Site.Site): Promise<ReadonlyArray<Row>> => {
  const ours = opener(page, site, Site.runs.short)
  const empty = await compareLowest(ours, () => firstPaint(page, `${site.origin}/#/questions`, ".empty"), 8)
  const figures = await figuresOf(page, ours, 10_007)
  const all = () => firstPaint(page, site.allRows(Site.runs.short), first)
  const peer = await compare(ours, all, { warm: 0, counted: 2 })
  await all()
  return [
    ratioRow("studio.10k.empty", "10,000 events: first paint, against the empty page", empty, "ms", 3),
    ratioRow("studio.10k.all", "10,000 events: first paint, against a page with all rows", peer, "ms", 1),
    ...rowsOf("studio.10k", "10,000 events", figures, { first: 500, key: 50, heap: 60 }),
    row("studio.all.frame", "a page with all rows: ms of the longest frame", await longestFrame(page, list), null),
    row("studio.all.frame.cpu", "a page with all rows: CPU ms of the longest step", await scrollCpu(page, list), null)
  ]
}

const ofLong = async (page: Page, site: Site.Site): Promise<ReadonlyArray<Row>> => {
  const figures = await figuresOf(page, opener(page, site, Site.runs.long), 100_007)
  return rowsOf("studio.100k", "100,000 events", figures, { first: 1_000, key: 100, heap: null })
}

const measured = async (browser: Browser, site: Site.Site): Promise<ReadonlyArray<Row>> => {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } })
  await page.goto(site.entry)
  await page.getByRole("link", { name: "Runs" }).waitFor()
  return [...(await ofShort(page, site)), ...(await ofLong(page, site))]
}

export default async (): Promise<ReadonlyArray<Row>> => {
  const browser = await launch()
  const site = await Site.open()
  try {
    return await measured(browser, site)
  } finally {
    await Promise.all([browser.close(), site.close()])
  }
}
