/** The state of the page in one place: where it is, what it shows, and what is under way. */

import { batch, computed, signal } from "@preact/signals"
import type { Approval, RunLine } from "../internal/studioData.ts"
import { Journal } from "./journal.ts"
import type { Info, LiveEvent, Source } from "./source.ts"

/** The tabs of a run, in the order of their keys. */
export const tabs = ["Conversation", "Blocks", "Events", "State", "Media", "Usage", "Explain"] as const
export type Tab = (typeof tabs)[number]

// ---------------------------------------------------------------- the place

export const hash = signal(location.hash)

export interface Place {
  readonly screen: "runs" | "run" | "approvals" | "chat"
  readonly id: string
  readonly sub: string
  readonly query: URLSearchParams
}

/** The screen of the address. */
export const place = computed((): Place => {
  const [path = "", query = ""] = hash.value.replace(/^#\/?/, "").split("?")
  const [screen = "", id = "", sub = ""] = path.split("/").map(decodeURIComponent)
  const known = screen === "approvals" || screen === "chat" ? screen : screen === "runs" && id !== "" ? "run" : "runs"
  return { screen: known, id, sub, query: new URLSearchParams(query) }
})

/** Goes to an address of the page. */
export const go = (address: string): void => {
  location.hash = address
}

export const runAddress = (runId: string): string => `#/runs/${encodeURIComponent(runId)}`

/** Changes a parameter of the address without a new entry in the history. */
export const setQuery = (name: string, value: string | undefined): void => {
  const { query } = place.value
  if (value === undefined) query.delete(name)
  else query.set(name, value)
  const [path = ""] = location.hash.split("?")
  const text = query.toString()
  history.replaceState(null, "", text === "" ? path : `${path}?${text}`)
  hash.value = location.hash
}

export const tab = computed((): Tab => tabs.find((name) => name === place.value.query.get("tab")) ?? "Conversation")

// ---------------------------------------------------------------- data

let source: Source | undefined

/** The source of the data; set once, before anything is drawn. */
export const data = (): Source => {
  if (source === undefined) throw new Error("the page has no source yet")
  return source
}

export const info = signal<Info>({ readOnly: true, agents: [] })
export const canChange = computed(() => !info.value.readOnly)
export const notice = signal("")
export const showKeys = signal(false)

/** Opens the page on a source. */
export const begin = async (from: Source): Promise<void> => {
  source = from
  info.value = await from.info()
}

/** Runs an action, and shows the problem if it fails. */
export const attempt = async (action: () => Promise<unknown>): Promise<boolean> => {
  try {
    await action()
    notice.value = ""
    return true
  } catch (error) {
    notice.value = error instanceof Error ? error.message : String(error)
    return false
  }
}

export const runs = signal<ReadonlyArray<RunLine>>([])
export const next = signal<string | undefined>(undefined)
export const runsRead = signal(false)
export const filter = signal("")
export const approvals = signal<ReadonlyArray<Approval>>([])

/** Reads `status:x agent:y words` as a query. */
export const queryOf = (text: string): { status?: string; agent?: string; search?: string } => {
  const query: { status?: string; agent?: string; search?: string } = {}
  const words: Array<string> = []
  for (const word of text.split(/\s+/)) {
    const [, name, value] = /^(status|agent):(.+)$/.exec(word) ?? []
    if (name === "status" && value !== undefined) query.status = value
    else if (name === "agent" && value !== undefined) query.agent = value
    else if (word !== "") words.push(word)
  }
  return words.length === 0 ? query : { ...query, search: words.join(" ") }
}

/** Reads the list of runs again, or its next page. */
export const readRuns = async (more = false): Promise<void> => {
  const after = more && next.value !== undefined ? { after: next.value } : {}
  const page = await data().runs({ ...queryOf(filter.value), ...after })
  batch(() => {
    runs.value = more ? [...runs.value, ...page.runs] : page.runs
    next.value = page.next
    runsRead.value = true
  })
}

export const readApprovals = async (): Promise<void> => {
  approvals.value = await data().approvals()
}

// ---------------------------------------------------------------- the open run

export interface OpenRun {
  readonly runId: string
  readonly journal: Journal
  /** Counts changes of the journal, which grows in place. */
  readonly version: number
  readonly isWhole: boolean
  readonly damage: string | undefined
  readonly family: ReadonlyArray<RunLine>
}

export const run = signal<OpenRun | undefined>(undefined)
export const problem = signal("")
export const said = signal("")
export const playing = signal(0)

/** The revision that is drawn; the last one while it is live. */
export const isLive = computed(() => place.value.query.get("rev") === null)
export const revision = computed(() => {
  const last = run.value?.journal.revision ?? 0
  const asked = Number(place.value.query.get("rev") ?? last)
  return Math.max(0, Math.min(Number.isInteger(asked) ? asked : last, last))
})
export const state = computed(() => {
  // The version changes when the journal grew.
  void run.value?.version
  return run.value?.journal.stateAt(revision.value)
})

export const setRevision = (to: number): void => {
  const last = run.value?.journal.revision ?? 0
  setQuery("rev", String(Math.max(1, Math.min(to, last))))
}

export const goLive = (): void => setQuery("rev", undefined)

let leave: () => void = () => undefined

/** Opens a run: its journal, the runs of its tree, and then its events as they come. */
export const openRun = async (runId: string): Promise<void> => {
  leave()
  let isGone = false
  let stop = () => {}
  leave = () => {
    isGone = true
    stop()
  }
  batch(() => {
    run.value = { runId, journal: new Journal(), version: 0, isWhole: false, damage: undefined, family: [] }
    problem.value = ""
    said.value = ""
    playing.value = 0
  })
  try {
    await readOn(runId, () => isGone)
    if (isGone) return
    stop = data().follow(runId, (event) => live(runId, event, () => isGone))
  } catch (error) {
    problem.value = error instanceof Error ? error.message : String(error)
  }
}

export const closeRun = (): void => {
  leave()
  run.value = undefined
}

/** Reads the rest of the journal, part by part: the first part is drawn while the rest comes. */
const readOn = async (runId: string, isGone: () => boolean): Promise<void> => {
  for (;;) {
    const open = run.value
    if (isGone() || open?.runId !== runId) return
    const { damage, records, revision } = await data().records(runId, open.journal.revision)
    if (isGone()) return
    open.journal.add(records)
    const isWhole = open.journal.revision >= revision || records.length === 0 || damage !== undefined
    run.value = { ...(run.value ?? open), version: open.version + 1, isWhole, damage }
    if (isWhole) break
  }
  const rootRunId = run.value?.journal.stateAt(1)?.rootRunId ?? runId
  const { runs } = await data().runs({ rootRunId })
  if (!isGone() && run.value !== undefined) run.value = { ...run.value, family: runs }
}

let isReading = false
let isBehind = false
let block = ""

const live = (runId: string, event: LiveEvent, isGone: () => boolean): void => {
  if (isGone() || event.runId !== runId) return
  if (event.type === "block_start") block = event.blockType ?? ""
  if (event.type === "block_complete") block = ""
  if (event.type === "text_chunk" || (event.type === "block_content" && block === "final"))
    said.value += event.text ?? ""
  if (event.type === "model_completed" || event.type === "model_started") said.value = ""
  if (event.revision === undefined || event.revision <= (run.value?.journal.revision ?? 0)) return
  if (isReading) {
    isBehind = true
    return
  }
  isReading = true
  requestAnimationFrame(async () => {
    do {
      isBehind = false
      await attempt(() => readOn(runId, isGone))
    } while (isBehind)
    isReading = false
  })
}
