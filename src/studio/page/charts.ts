/** Charts of uPlot. They are a file of their own, which the page loads when it draws the first one. */

import UPlot from "uplot"

/** A series of a chart, stacked on those before it. */
export interface Series {
  readonly label: string
  readonly color: string
  readonly values: ReadonlyArray<number>
}

export interface Chart {
  /** The starts of the slots, in milliseconds since the epoch. */
  readonly times: ReadonlyArray<number>
  /** The end of the last slot. */
  readonly end: number
  readonly series: ReadonlyArray<Series>
  readonly ink: string
  readonly line: string
  /** The value at the top of an empty chart. */
  readonly least: number
  readonly format: (value: number) => string
  /** Called with the index of the slot that a person chose. */
  readonly onSlot: (slot: number) => void
}

/** Draws a chart of stacked bars into an element. Returns a function that removes it. */
export const draw = (element: HTMLElement, chart: Chart): (() => void) => {
  const { end, format, ink, least, line, onSlot, series, times } = chart
  const heights = stacked(series)
  const words = new Intl.DateTimeFormat(undefined, formatOf(end - (times[0] ?? end)))
  const bars = UPlot.paths.bars?.({ size: [0.8, 40], align: 1 })
  const axis = {
    stroke: ink,
    grid: { stroke: line, width: 1 },
    ticks: { stroke: line, width: 1 },
    font: "12px system-ui"
  }
  const plot = new UPlot(
    {
      width: element.clientWidth,
      height: 220,
      legend: { show: false },
      cursor: { drag: { x: false, y: false } },
      scales: {
        x: { range: [(times[0] ?? 0) / 1_000, end / 1_000] },
        y: { range: (_, __, most) => [0, Math.max(least, most)] }
      },
      axes: [
        { ...axis, values: (_, at) => at.map((second) => words.format(second * 1_000)) },
        { ...axis, size: 64, values: (_, at) => at.map(format) }
      ],
      series: [
        {},
        ...series.map(({ color, label }) => ({
          label,
          fill: color,
          width: 0,
          points: { show: false },
          ...(bars === undefined ? {} : { paths: bars })
        }))
      ]
    },
    // The highest stack is drawn first, so that the lower ones stand before it.
    [times.map((at) => at / 1_000), ...heights],
    element
  )
  const choose = () => {
    const slot = plot.cursor.idx
    if (typeof slot === "number") onSlot(slot)
  }
  plot.over.addEventListener("click", choose)
  const resized = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: 220 }))
  resized.observe(element)
  return () => {
    resized.disconnect()
    plot.destroy()
  }
}

const day = 86_400_000

/** Returns the format of the times of a range: the hour for a day, the day for longer. */
const formatOf = (length: number): Intl.DateTimeFormatOptions =>
  length <= day ? { hour: "2-digit", minute: "2-digit", hourCycle: "h23" } : { month: "short", day: "numeric" }

/** Returns the values of each series with those of the series after it, so that the first one is the highest. */
const stacked = (series: ReadonlyArray<Series>): ReadonlyArray<Array<number>> => {
  const heights: Array<Array<number>> = []
  for (const { values } of series.toReversed()) {
    const below = heights[0]
    heights.unshift(values.map((value, slot) => value + (below?.[slot] ?? 0)))
  }
  return heights
}
