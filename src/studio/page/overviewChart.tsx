/** A chart of the overview: runs by status, cost and tokens by model, or how long runs took. */

import { useEffect, useRef } from "preact/hooks"
import type { RunCount } from "../../RunStore.ts"
import type { Overview } from "../internal/studioOverview.ts"
import type { Chart, Series } from "./charts.ts"
import { cost, duration, named, short } from "./format.ts"
import { attempt, go } from "./pageStore.ts"
import { commonest, sumsOf } from "./spending.ts"
import { isDark } from "./theme.ts"

/** The statuses from the bottom of a bar to its top, with the tokens of their colors. */
export const statuses = [
  ["completed", "done"],
  ["running", "running"],
  ["waiting", "waiting"],
  ["cancelled", "stopped"],
  ["no_answer", "none"],
  ["failed", "error"]
] as const

export const statusOf = ({ status }: RunCount): string => (status === "poisoned" ? "failed" : status)

export const measures = ["runs", "cost", "tokens", "duration"] as const
export type Measure = (typeof measures)[number]

interface Props {
  readonly overview: Overview
  readonly measure: Measure
}

export const OverviewChart = ({ measure, overview }: Props) => {
  const element = useRef<HTMLDivElement>(null)
  const dark = isDark.value
  useEffect(() => {
    let remove = () => {}
    let isGone = false
    void attempt(async () => {
      const { draw } = await loadCharts()
      if (element.current === null || isGone) return
      remove = draw(element.current, chartOf(overview, measure, element.current))
    })
    return () => {
      isGone = true
      remove()
    }
  }, [overview, measure, dark])
  const legend = seriesOf(overview, measure)
  return (
    <>
      <div class="chart" ref={element} role="img" aria-label={`${measure} over time`} />
      <p class="keys-of-chart">
        {legend.map(({ label, token }) => (
          <span key={label}>
            <i style={{ background: areaOf(token) }} /> {label}
          </span>
        ))}
      </p>
    </>
  )
}

/** Loads the charts, which are a file beside the script of the page. */
const loadCharts = (): Promise<typeof import("./charts.ts")> => import(new URL("charts.js", import.meta.url).href)

/** Returns the color of an area. The tokens of statuses are as dark as texts have to be. */
const areaOf = (token: string): string => `color-mix(in oklab, var(--${token}) 75%, var(--panel))`

const chartOf = (overview: Overview, measure: Measure, element: HTMLElement): Chart => {
  const { from, slots, to } = overview
  const width = (to - from) / slots
  const computed = (color: string) => {
    element.style.color = color
    return getComputedStyle(element).color
  }
  return {
    times: Array.from({ length: slots }, (_, slot) => from + slot * width),
    end: to,
    ink: computed("var(--quiet)"),
    line: computed("var(--line-soft)"),
    series: seriesOf(overview, measure).map(({ label, token, values }) => ({
      label,
      color: computed(areaOf(token)),
      values
    })),
    ...axes[measure],
    onSlot: (slot) => {
      const of = (at: number) => new Date(from + at * width).toISOString()
      go(`#/?q=since:${of(slot)} before:${of(slot + 1)}`)
    }
  }
}

const axes = {
  runs: { least: 4, format: (value: number) => value.toLocaleString("en") },
  cost: { least: 0.001, format: cost },
  tokens: { least: 4, format: short },
  duration: { least: 10, format: duration }
} as const

type Line = Omit<Series, "color"> & { readonly token: string }

/** Returns the series of a chart, the highest of a stack first. */
const seriesOf = ({ counts, slots, spending = [] }: Overview, measure: Measure): ReadonlyArray<Line> => {
  const perSlot = (value: (slot: number) => number) => Array.from({ length: slots }, (_, slot) => value(slot))
  if (measure === "runs") {
    return statuses.toReversed().map(([status, token]) => ({
      label: named(status),
      token,
      values: perSlot((slot) =>
        counts.reduce((sum, one) => (one.slot === slot && statusOf(one) === status ? sum + one.count : sum), 0)
      )
    }))
  }
  if (measure === "duration") {
    const sums = perSlot((slot) => slot).map((slot) => sumsOf(spending.filter((line) => line.slot === slot)))
    return [
      { label: "95% of the runs", token: "idle", values: sums.map(({ half, most }) => most - half) },
      { label: "half of the runs", token: "model", values: sums.map(({ half }) => half) }
    ]
  }
  const models = commonest(spending, "model")
  const shown = models.slice(0, hues.length)
  return shown
    .map((model, index) => {
      const isRest = index === hues.length - 1 && models.length > hues.length
      const own = spending.filter((line) =>
        isRest ? !shown.slice(0, index).includes(line.model) : line.model === model
      )
      return {
        label: isRest ? "other models" : model,
        token: hues[index] ?? "other",
        values: perSlot((slot) => {
          const { costUsd = 0, tokens } = sumsOf(own.filter((line) => line.slot === slot))
          return measure === "cost" ? costUsd : tokens
        })
      }
    })
    .toReversed()
}

const hues = ["model", "skill", "idle", "none", "other"] as const
