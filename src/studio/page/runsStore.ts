/** The list of runs: its filter and order, which stand in the address, its lines, and the selected ones. */

import { batch, computed, effect, signal } from "@preact/signals"
import type { ListQuery, RunLine } from "../internal/studioData.ts"
import { placeText } from "../../store-kit/StoreRules.ts"
import { data, place, setQuery } from "./pageStore.ts"

export const runs = signal<ReadonlyArray<RunLine>>([])
export const next = signal<string | undefined>(undefined)
export const runsRead = signal(false)
export const selected = signal<ReadonlySet<string>>(new Set())

/** The text of the filter. */
export const filter = computed(() => (place.value.screen === "runs" ? (place.value.query.get("q") ?? "") : ""))

/** The address of the list as it was left. */
export const listAddress = signal("#/")
effect(() => {
  const { query, screen } = place.value
  if (screen === "runs") listAddress.value = query.size === 0 ? "#/" : `#/?${query.toString()}`
})

/** The column that orders the list. A minus means the largest first. */
export const order = computed(() => {
  const text = place.value.query.get("sort") ?? ""
  return { column: text.replace(/^-/, ""), isDescending: text.startsWith("-") }
})

/** Orders by a column: the largest first, then the smallest first, then not at all. */
export const orderBy = (column: string): void => {
  const { column: before, isDescending } = order.value
  setQuery("sort", before !== column ? `-${column}` : isDescending ? column : undefined)
}

/** A filter: the query for the server, and a test of the returned lines. */
export interface Filter {
  readonly query: { -readonly [Name in keyof ListQuery]: ListQuery[Name] }
  readonly keeps: (line: RunLine) => boolean
}

/**
 * Reads `status:x agent:y caller:z model:m tag:t tenant:t label:name=text since:time before:time cost>0.1 errors>0
 * words`. Runs before a time are those that follow it in the list.
 */
export const filterOf = (text: string): Filter => {
  const query: Filter["query"] = {}
  const words: Array<string> = []
  const labels: Array<string> = []
  const least = { cost: -Infinity, errors: -Infinity, since: -Infinity }
  for (const word of text.split(/\s+/)) {
    const [, name = "", value = ""] =
      /^(status:|agent:|caller:|model:|tag:|tenant:|label:|since:|before:|cost>|errors>)(.+)$/.exec(word) ?? []
    if (name === "status:") query.status = value
    else if (name === "agent:") query.agent = value
    else if (name === "caller:") query.caller = value
    else if (name === "model:") query.model = value
    else if (name === "tag:") query.tag = value
    else if (name === "tenant:") query.tenant = value
    else if (name === "label:") labels.push(value)
    else if (name === "since:") least.since = instantOf(value)
    else if (name === "before:") query.after = placeText({ createdAt: instantOf(value), runId: "~" })
    else if (name === "cost>") least.cost = Number(value)
    else if (name === "errors>") least.errors = Number(value)
    else if (word !== "") words.push(word)
  }
  if (labels.length > 0) query.label = labels
  if (words.length > 0) query.search = words.join(" ")
  return {
    query,
    keeps: ({ costUsd = 0, createdAt, errors = 0 }) =>
      costUsd > least.cost && errors > least.errors && createdAt >= least.since
  }
}

/** Reads an instant as `2026-11-29T18:30:00Z`. One that is not complete yet, as while it is typed, is the beginning. */
const instantOf = (text: string): number => Math.max(0, Date.parse(text) || 0)

/** The status of the filter, or an empty text. */
export const statusFilter = computed(() => filterOf(filter.value).query.status ?? "")

/** Filters by a status, and keeps the rest of the filter. */
export const setStatus = (status: string): void => {
  const rest = filter.value.split(/\s+/).filter((word) => word !== "" && !word.startsWith("status:"))
  setFilter([...(status === "" ? [] : [`status:${status}`]), ...rest].join(" "))
}

export const setFilter = (text: string): void => {
  setQuery("q", text === "" ? undefined : text)
  selected.value = new Set()
}

let asked = 0

/** Reads the list of runs again, or its next page. An answer that is overtaken by a newer one is dropped. */
export const readRuns = async (more = false): Promise<void> => {
  const turn = ++asked
  const { column, isDescending } = order.value
  const { query } = filterOf(filter.value)
  const isOldest = column === "age" && isDescending && query.after === undefined
  const page = await data().runs({
    ...query,
    ...(isOldest ? { order: "oldest" } : {}),
    ...(more && next.value !== undefined ? { after: next.value } : {})
  })
  if (turn !== asked) return
  batch(() => {
    runs.value = more ? [...runs.value, ...page.runs] : page.runs
    next.value = page.next
    runsRead.value = true
  })
}

export const toggle = (runId: string): void => {
  const others = [...selected.value].filter((one) => one !== runId)
  selected.value = new Set(others.length === selected.value.size ? [...others, runId] : others)
}
