/**
 * What the benchmarks share: timers, medians, comparisons of two sides, and rows to report.
 */

/** One measured figure and its bar. */
export interface Row {
  /** A stable key for scripts, such as `loop.100.pi`. */
  readonly id: string
  readonly name: string
  /** The figure that the bar limits: a ratio to the peer, or a plain amount. */
  readonly value: number
  /** The most that `value` may be; null for a row without a bar. */
  readonly bound: number | null
  readonly pass: boolean
  /** The medians of both sides where a peer was measured beside. */
  readonly medians?: Medians
}

/** The medians of one side and its peer, in one unit. */
export interface Medians {
  readonly ours: number
  readonly peer: number
  readonly unit: string
}

/** Returns a row with a bar, or without one for a figure that is only shown. */
export const row = (id: string, name: string, value: number, bound: number | null, medians?: Medians): Row => ({
  id,
  name,
  value,
  bound,
  pass: bound === null || value <= bound,
  ...(medians === undefined ? {} : { medians })
})

/** Returns the CPU microseconds of this process while `body` runs, garbage collection included. */
export const cpu = async (body: () => unknown): Promise<number> => {
  const before = process.cpuUsage()
  await body()
  const { system, user } = process.cpuUsage(before)
  return user + system
}

/** Returns the milliseconds until `body` ends. */
export const wall = async (body: () => unknown): Promise<number> => {
  const from = performance.now()
  await body()
  return performance.now() - from
}

export const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

/** Returns the bytes of heap in use after a collection; needs `--expose-gc`. */
export const heapUsed = (): number => {
  if (globalThis.gc === undefined) throw new Error("start node with --expose-gc")
  globalThis.gc()
  return process.memoryUsage().heapUsed
}

/** Returns the middle value, or the mean of the two in the middle. */
export const median = (values: ReadonlyArray<number>): number => {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.slice((sorted.length - 1) >> 1, (sorted.length >> 1) + 1)
  return middle.reduce((sum, value) => sum + value, 0) / middle.length
}

/** How many rounds run, and how many of them count. */
export interface Rounds {
  readonly warm: number
  readonly counted: number
}

/** Two sides measured in turns. */
export interface Comparison {
  /** The median of the rounds' ratios. */
  readonly ratio: number
  readonly ours: number
  readonly peer: number
}

/** Returns the medians of rounds in which both sides were measured. */
export const comparisonOf = (rounds: ReadonlyArray<{ readonly ours: number; readonly peer: number }>): Comparison => ({
  ratio: median(rounds.map(({ ours, peer }) => ours / peer)),
  ours: median(rounds.map(({ ours }) => ours)),
  peer: median(rounds.map(({ peer }) => peer))
})

/**
 * Measures two sides round by round. They alternate in going first, because each leaves garbage
 * that the next one collects.
 */
export const compare = async (
  ours: () => Promise<number>,
  peer: () => Promise<number>,
  { counted, warm }: Rounds
): Promise<Comparison> => {
  const times: Array<{ readonly ours: number; readonly peer: number }> = []
  for (let round = 0; round < warm + counted; round++) {
    const time = { ours: 0, peer: 0 }
    if (round % 2 === 0) time.ours = await ours()
    time.peer = await peer()
    if (round % 2 === 1) time.ours = await ours()
    if (round >= warm) times.push(time)
  }
  return comparisonOf(times)
}

/** Returns the row of a comparison: its ratio, and the medians of both sides. */
export const ratioRow = (
  id: string,
  name: string,
  { ours, peer, ratio }: Comparison,
  unit: string,
  bound: number | null
): Row => row(id, name, ratio, bound, { ours, peer, unit })

/** Prints rows, one a line. */
export const table = (title: string, rows: ReadonlyArray<Row>): void => {
  console.log(title)
  for (const row of rows) console.log(lineOf(row))
}

/** Prints rows on stderr as soon as they are measured, and returns them: a long benchmark shows how far it is. */
export const shown = (rows: ReadonlyArray<Row>): ReadonlyArray<Row> => {
  for (const row of rows) console.error(lineOf(row))
  return rows
}

const lineOf = ({ bound, medians, name, pass, value }: Row): string => {
  const verdict = bound === null ? "    " : pass ? "pass" : "FAIL"
  const limit = (bound === null ? "no bar" : `at most ${bound}`).padEnd(13)
  const sides =
    medians === undefined ? "" : ` (${medians.ours.toFixed(2)} against ${medians.peer.toFixed(2)} ${medians.unit})`
  return `  ${verdict}  ${value.toFixed(3).padStart(9)}  ${limit}  ${name}${sides}`
}
