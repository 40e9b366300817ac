/** Measures what values keep in the heap of this process. */
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"

setFlagsFromString("--expose-gc")
const gc: () => void = runInNewContext("gc")

/** Returns the bytes that the values of `make` keep, per value. */
export const bytesEach = (count: number, make: (index: number) => unknown): number => {
  const kept: Array<unknown> = Array.from({ length: count })
  // Compiles what `make` calls.
  for (let index = 0; index < 2_000; index++) make(index)
  gc()
  const before = process.memoryUsage().heapUsed
  for (let index = 0; index < count; index++) kept[index] = make(index)
  gc()
  const bytes = process.memoryUsage().heapUsed - before
  return kept.length === count ? bytes / count : Infinity
}
