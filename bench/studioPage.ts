/**
 * What a page of a browser takes: paint, frames, keys and heap.
 *
 * Frames and keys have a wall time, to which all other programs of the machine add, and a CPU time of the page's main
 * thread, to which they do not.
 */
import type { CDPSession, Page } from "playwright-core"
import { median } from "./support.ts"

/** A worst case of several, by both clocks. */
export interface Worst {
  readonly wall: number
  readonly cpu: number
}

/** Returns the milliseconds from the start of the navigation to the frame with the first element of a selector. */
export const firstPaint = async (page: Page, address: string, selector: string): Promise<number> => {
  await page.goto("about:blank")
  await page.goto(address, { waitUntil: "commit" })
  return page.evaluate(
    (selector) =>
      new Promise<number>((resolve) => {
        const look = () => {
          if (document.querySelector(selector) === null) requestAnimationFrame(look)
          else requestAnimationFrame(() => setTimeout(() => resolve(performance.now())))
        }
        look()
      }),
    selector
  )
}

/** Returns the longest of 300 frames, in milliseconds, while rows are scrolled by 180 to 4,000 pixels a frame. */
export const longestFrame = (page: Page, selector: string): Promise<number> =>
  page.evaluate(async (selector) => {
    const list = document.querySelector(selector)
    const frame = () => new Promise<number>((resolve) => requestAnimationFrame(resolve))
    let before = await frame()
    let longest = 0
    for (let at = 0; at < 300; at++) {
      if (list !== null) {
        list.scrollTop = (list.scrollTop + 180 + ((at * 977) % 3_820)) % (list.scrollHeight - list.clientHeight)
      }
      const now = await frame()
      longest = Math.max(longest, now - before)
      before = now
    }
    return longest
  }, selector)

/** Returns the lowest longest frame of up to so many rounds. One that is short enough needs no further round. */
export const bestFrame = async (page: Page, selector: string, most: number, enough: number): Promise<number> => {
  let best = Infinity
  for (let round = 0; round < most && best > enough; round++) best = Math.min(best, await longestFrame(page, selector))
  return best
}

const twoFrames = (page: Page) =>
  page.evaluate(
    () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(resolve))))
  )

/** Counts the CPU milliseconds of the page's main thread. */
const counter = async (page: Page) => {
  const session = await page.context().newCDPSession(page)
  await session.send("Performance.enable", { timeDomain: "threadTicks" })
  let last = await taskTime(session)
  return {
    since: async (): Promise<number> => {
      const now = await taskTime(session)
      const took = now - last
      last = now
      return took * 1_000
    },
    end: () => session.detach()
  }
}

const taskTime = async (session: CDPSession): Promise<number> => {
  const { metrics } = await session.send("Performance.getMetrics")
  return metrics.find(({ name }) => name === "TaskDuration")?.value ?? NaN
}

/** Returns the most CPU milliseconds of one of 60 steps of scrolling. */
export const scrollCpu = async (page: Page, selector: string): Promise<number> => {
  const cpu = await counter(page)
  let most = 0
  for (let at = 0; at < 60; at++) {
    await cpu.since()
    await page.evaluate(([selector, by]) => document.querySelector(selector)?.scrollBy(0, by), [
      selector,
      180 + ((at * 977) % 3_820)
    ] as const)
    await twoFrames(page)
    most = Math.max(most, await cpu.since())
  }
  await cpu.end()
  return most
}

/** Returns the slowest of 20 keys, from the key to the frame after it. */
export const slowestKey = async (page: Page): Promise<Worst> => {
  await page.evaluate(() => {
    const times: Array<number> = []
    Object.assign(window, { times })
    addEventListener(
      "keydown",
      ({ timeStamp }) => requestAnimationFrame(() => setTimeout(() => times.push(performance.now() - timeStamp))),
      { capture: true }
    )
  })
  const counted = await counter(page)
  const press = async (key: string) => {
    await counted.since()
    await page.keyboard.press(key)
    await twoFrames(page)
    return counted.since()
  }
  // A key that does nothing shows what the measurement itself takes.
  const idle = median([await press("q"), await press("q"), await press("q"), await press("q"), await press("q")])
  await page.evaluate(() => Reflect.get(window, "times").splice(0))
  let cpu = 0
  for (let at = 0; at < 20; at++) {
    cpu = Math.max(cpu, (await press(at % 5 === 4 ? "e" : at % 2 === 0 ? "," : ".")) - idle)
  }
  await counted.end()
  const times: ReadonlyArray<number> = await page.evaluate(() => Reflect.get(window, "times"))
  return { wall: Math.max(...times), cpu }
}

/** Returns the slowest key of the best of three rounds. */
export const bestKey = async (page: Page): Promise<Worst> => {
  const rounds = [await slowestKey(page), await slowestKey(page), await slowestKey(page)]
  return {
    wall: Math.min(...rounds.map(({ wall }) => wall)),
    cpu: Math.min(...rounds.map(({ cpu }) => cpu))
  }
}

/** Returns the megabytes of the page's heap after a collection. */
export const heap = async (page: Page): Promise<number> => {
  const session = await page.context().newCDPSession(page)
  await session.send("HeapProfiler.collectGarbage")
  const { usedSize } = await session.send("Runtime.getHeapUsage")
  await session.detach()
  return usedSize / 1e6
}
