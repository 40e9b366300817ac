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
export const cpu = async (body: () => Promise<unknown> | void): Promise<number> => {
  const before = process.cpuUsage()
  await body()
  const { system, user } = process.cpuUsage(before)
  return user + system
}

export const median = (values: ReadonlyArray<number>): number => {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[sorted.length >> 1] ?? Number.NaN
}

/** Prints rows, one a line. */
export const table = (title: string, rows: ReadonlyArray<Row>): void => {
  console.log(title)
  for (const { bound, name, pass, value } of rows) {
    const limit = Number.isFinite(bound) ? `at most ${bound}` : "for reading"
    console.log(`  ${pass ? "pass" : "FAIL"}  ${value.toFixed(3).padStart(9)}  ${limit.padEnd(14)}  ${name}`)
  }
}
