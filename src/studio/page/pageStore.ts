/** The state of the page in one place: its address, its data, and actions in progress. */

import { computed, signal } from "@preact/signals"
import type { Guest } from "../internal/guestPage.ts"
import type { Info } from "../internal/studioInfo.ts"
import { inBrowser } from "./browserStorage.ts"
import type { Source } from "./source.ts"

/** The tabs of a run, in the order of their keys. */
export const tabs = ["Conversation", "Explain", "Blocks", "Events", "State", "Media", "Usage"] as const
export type Tab = (typeof tabs)[number]

// ---------------------------------------------------------------- the address

export const hash = signal(location.hash)

/** The screens that are named by the first part of the address. */
const screens = ["overview", "questions", "chat", "operate", "scenarios", "evaluate", "compare", "play"] as const

export interface Place {
  readonly screen: (typeof screens)[number] | "runs" | "run"
  readonly id: string
  readonly sub: string
  /** All parts of the address after the screen, of which `id` and `sub` are the first. */
  readonly parts: ReadonlyArray<string>
  readonly query: URLSearchParams
}

/** The screen of the address. */
export const place = computed((): Place => {
  const [path = "", query = ""] = hash.value.replace(/^#\/?/, "").split("?")
  const [screen = "", ...parts] = path.split("/").map(decodeURIComponent)
  const [id = "", sub = ""] = parts
  return { screen: screenOf(screen, id), id, sub, parts, query: new URLSearchParams(query) }
})

const screenOf = (name: string, id: string): Place["screen"] =>
  screens.find((screen) => screen === name) ?? (name === "runs" && id !== "" ? "run" : "runs")

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

/** Returns the source of the data, which is set once before anything is drawn. */
export const data = (): Source => {
  if (source === undefined) throw new Error("the page has no source yet")
  return source
}

export const info = signal<Info>({
  readOnly: true,
  scenarios: false,
  evaluations: false,
  agents: [],
  models: [],
  inputs: {}
})
/** The settings of a page for end users, who see no tools, journals and runs. */
export const guest = signal<Guest | undefined>(undefined)
export const canChange = computed(() => !info.value.readOnly)
export const notice = signal("")
export const showKeys = signal(false)
/** Whether single keys act. Users of dictation or other tools can switch them off. */
export const hasKeys = signal(inBrowser.get("kernai.keys") !== "off")

export const setKeys = (isOn: boolean): void => {
  hasKeys.value = isOn
  inBrowser.set("kernai.keys", isOn ? "on" : "off")
}

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
