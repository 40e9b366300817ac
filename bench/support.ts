/**
 * What every benchmark needs: CPU time, medians, a table.
 */

/** One measured ratio and what it may be at most. */
export interface Row {
  readonly name: string
  readonly value: number
  readonly bound: number
  readonly pass: boolean
}

/** CPU microseconds of this process while `body` runs. */
export const cpu = async (body: () => unknown): Promise<number> => {
  const before = process.cpuUsage()
  await body()
  const { system, user } = process.cpuUsage(before)
  return user + system
}

/** The middle one, or what is between the two in the middle. */
export const median = (values: ReadonlyArray<number>): number => {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.slice((sorted.length - 1) >> 1, (sorted.length >> 1) + 1)
  return middle.reduce((sum, value) => sum + value, 0) / middle.length
}

/**
 * How much one contender needs for what another does: the median of their ratios over rounds in which both have
 * their turn, after some that warm up. They take turns in going first, for what one leaves behind the next one has
 * to collect; a third would leave more.
 */
export const against = async (
  one: () => Promise<number>,
  other: () => Promise<number>,
  rounds: { readonly warm: number; readonly counted: number }
): Promise<{ readonly ratio: number; readonly one: number; readonly other: number }> => {
  const times: Array<{ readonly one: number; readonly other: number }> = []
  for (let round = 0; round < rounds.warm + rounds.counted; round++) {
    const time = { one: 0, other: 0 }
    if (round % 2 === 0) time.one = await one()
    time.other = await other()
    if (round % 2 === 1) time.one = await one()
    if (round >= rounds.warm) times.push(time)
  }
  return {
    ratio: median(times.map(({ one, other }) => one / other)),
    one: median(times.map(({ one }) => one)),
    other: median(times.map(({ other }) => other))
  }
}

/** Prints rows, one a line. */
export const table = (title: string, rows: ReadonlyArray<Row>): void => {
  console.log(title)
  for (const { bound, name, pass, value } of rows) {
    const limit = Number.isFinite(bound) ? `at most ${bound}` : "for reading"
    console.log(`  ${pass ? "pass" : "FAIL"}  ${value.toFixed(3).padStart(9)}  ${limit.padEnd(14)}  ${name}`)
  }
}
