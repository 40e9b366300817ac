/**
 * Two workers that never rest: one is killed again and again and replaced, the other lives to the end and may not grow.
 */
import { Effect } from "effect"
import { setTimeout as sleep } from "node:timers/promises"
import * as Ledger from "./ledger.ts"
import { at, type Child, finish, kill, type Outcome, type Settings, start } from "./real.ts"

/** What is asked of the workers, in time and in memory. */
export interface Wear {
  readonly minutes: number
  /** Seconds. */
  readonly killEvery: number
  /** How much the one that lives may grow: megabytes a minute. */
  readonly slope: number
}

/** What became of them. */
export interface Worn extends Outcome {
  readonly runs: number
  /** Megabytes a minute. */
  readonly slope: number
  /** What the heap of the one that lived was, in megabytes, each time it was looked at. */
  readonly heaps: ReadonlyArray<number>
}

/** A heap as it was seen, minutes after the beginning, in megabytes. */
type Look = readonly [minute: number, megabytes: number]

const runsPerSecond = 4
const unfinished = 16

/** Submits runs at one pace to two workers, kills one of them every so often, and judges what is left. */
export const soak = async (wear: Wear, settings: Settings = {}): Promise<Worn> => {
  const heaps: Array<Look> = []
  let runs = 0
  const outcome = await at(settings, async ({ store, submit }, order) => {
    const began = Date.now()
    const minutes = () => (Date.now() - began) / 60_000
    const worker = (name: string) => ({ ...order, machine: name, takes: 10, task: "work" as const })
    const survivor = await start(worker("a"), "--expose-gc")
    const looking = look(survivor, (megabytes) => heaps.push([minutes(), megabytes]))
    let rounds = 0
    let victim = await start(worker("b0"))
    const replace = async () => {
      await kill(worker(`b${rounds}`), victim)
      rounds++
      victim = await start(worker(`b${rounds}`))
    }
    const isBusy = async () =>
      (await Effect.runPromise(store.list({ status: ["queued", "running", "interrupted"], roots: true }))).length >=
      unfinished
    for (let beat = 1; minutes() < wear.minutes; beat++) {
      if (!(await isBusy())) await submit(`r${runs++}`)
      if (beat % (10 * runsPerSecond) === 0) survivor.write("heap")
      if (minutes() * 60 > (rounds + 1) * wear.killEvery) await replace()
      await sleep(Math.max(0, began + (beat * 1_000) / runsPerSecond - Date.now()))
    }
    for (const child of [survivor, victim]) child.signal("SIGTERM")
    const ends = await Promise.all([survivor.ended, victim.ended])
    await looking
    for (const name of ["a", `b${rounds}`]) Ledger.bury(order.folder, name)
    const failed = ends.flatMap(({ code, error }) => (code === 0 ? [] : [`a worker ended with ${code}: ${error}`]))
    return { rounds, refused: 0, findings: [...failed, ...(await finish(worker("z")))] }
  })
  const slope = slopeOf(heaps.slice(Math.ceil(heaps.length / 3)))
  const grown = slope < wear.slope ? [] : [`nothing_left: a worker grows by ${slope.toFixed(2)} MB a minute`]
  const seen = heaps.map(([, megabytes]) => megabytes)
  return { ...outcome, runs, slope, heaps: seen, findings: [...outcome.findings, ...grown] }
}

/** Hears what a worker says of its heap, until it has ended. */
const look = async (child: Child, see: (megabytes: number) => void): Promise<void> => {
  for (let line = await child.line(); line !== undefined; line = await child.line()) {
    const [word, bytes] = line.split(" ")
    if (word === "heap") see(Number(bytes) / 1e6)
  }
}

/** The slope of the line through all looks, by least squares. */
const slopeOf = (looks: ReadonlyArray<Look>): number => {
  const mean = (of: (look: Look) => number) => looks.reduce((sum, look) => sum + of(look), 0) / looks.length
  const [x, y] = [mean(([minute]) => minute), mean(([, megabytes]) => megabytes)]
  const rise = mean(([minute, megabytes]) => (minute - x) * (megabytes - y))
  return rise / mean(([minute]) => (minute - x) ** 2)
}
