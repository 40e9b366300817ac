/** The keys of the page. Each acts like a control or an address. */

import { state as stateAt, goLive, isLive, playing, revision, run, setRevision } from "./openRun.ts"
import { place, setQuery, showKeys, tabs, hasKeys } from "./pageStore.ts"
import { moveFocus } from "./rowFocus.ts"
import { toggle } from "./runsStore.ts"
import { setFolded, tree } from "./treeStore.ts"

/** The keys, for the list of keys. */
export const keys: ReadonlyArray<readonly [key: string, what: string]> = [
  ["j k", "next, previous row"],
  ["Enter", "open the row"],
  [", .", "previous, next revision"],
  ["[ ]", "previous, next turn, or own message"],
  ["e w", "next error, next wait"],
  ["Space", "play, stop"],
  ["L", "back to live"],
  ["1-7", "tabs of a run"],
  ["/", "filter"],
  ["h l", "fold, unfold the turn"],
  ["a d x", "approve, deny, edit (also e in approvals): once to go there, once more to do it"],
  ["x", "select the run of the row"],
  ["u", "take the answer back"],
  ["f s", "fork, cancel"],
  ["g + o r a c p e s", "overview, runs, approvals, chat, operate, evaluate, scenarios"],
  ["n i", "new conversation, write a message"],
  ["y", "copy the address"],
  ["?", "this list"]
]

let before = ""

export const onKey = (event: KeyboardEvent): void => {
  const { target } = event
  const isTyping = target instanceof HTMLElement && target.matches("input:not([type=range]), textarea, select")
  if (event.key === "Escape") {
    if (isTyping) target.blur()
    return
  }
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return
  if ((!hasKeys.value && event.key !== "?") || document.querySelector("dialog[open]") !== null) return
  const act = before === "g" ? going[event.key] : (actions[event.key] ?? tabAction(event.key))
  before = event.key
  if (act === undefined) return
  // A button handles Space and Enter itself.
  if (target instanceof HTMLButtonElement && event.key === " ") return
  event.preventDefault()
  act()
}

type Actions = { readonly [key: string]: (() => void) | undefined }

const go = (address: string) => () => {
  location.hash = address
}

const going: Actions = {
  o: go("#/overview"),
  r: go("#/"),
  a: go("#/questions"),
  c: go("#/chat/"),
  p: go("#/operate"),
  e: go("#/evaluate"),
  s: go("#/scenarios")
}

const actions: Actions = {
  "?": () => (showKeys.value = !showKeys.value),
  "/": () => document.querySelector<HTMLInputElement>("[data-filter]")?.focus(),
  j: () => moveFocus(1),
  k: () => moveFocus(-1),
  ",": () => setRevision(revision.value - 1),
  ".": () => setRevision(revision.value + 1),
  "[": () => toTurn(-1),
  "]": () => toTurn(1),
  e: () => (place.value.screen === "questions" ? press("x") : toNext("error")),
  w: () => toNext("waiting"),
  h: () => fold(true),
  l: () => fold(false),
  a: () => press("a"),
  d: () => press("d"),
  u: () => press("u", true),
  x: select,
  f: () => press("f", true),
  s: () => press("s", true),
  n: () => press("n", true),
  i: () => document.querySelector<HTMLElement>(".chat > section > .composer textarea")?.focus(),
  " ": () => (playing.value = playing.value === 0 ? 4 : 0),
  L: goLive,
  y: () => void navigator.clipboard?.writeText(location.href)
}

/** Selects the run of the focused row, or edits a call. */
function select(): void {
  const runId = document.activeElement instanceof HTMLElement ? document.activeElement.dataset["run"] : undefined
  if (runId === undefined) press("x")
  else toggle(runId)
}

/** Focuses a button, and presses it if it has the focus already or acts at once. */
const press = (key: string, isAtOnce = false): void => {
  const near = document.activeElement
    ?.closest(".card, article.question")
    ?.querySelector<HTMLElement>(`[data-key=${key}]`)
  const button = near ?? document.querySelector<HTMLElement>(`[data-key=${key}]`)
  if (button === null) return
  if (!isAtOnce && button !== document.activeElement) return button.focus()
  const isDecision = button.closest("article.question") !== null && (key === "a" || key === "d")
  button.click()
  if (isDecision) toNextQuestion()
}

/** Focuses the next question that is not decided, so that the place in the list is kept. */
const toNextQuestion = (): void => {
  const rows = [...document.querySelectorAll<HTMLElement>(".queue [data-row]")]
  const at = rows.findIndex((row) => row.hasAttribute("aria-current"))
  // The row of the call that was decided just now is not drawn again yet.
  const open = [...rows.slice(at + 1), ...rows.slice(0, Math.max(at, 0))].find((row) =>
    row.classList.contains("waiting")
  )
  ;(open ?? rows[at])?.focus()
}

const fold = (isClosed: boolean): void => {
  const turn = tree.value.findLast(
    ({ kind, revision: at, runId }) => kind === "turn" && runId === run.value?.runId && at <= revision.value
  )
  if (turn !== undefined) setFolded(turn.key, isClosed)
}

const tabAction = (key: string) => {
  const name = tabs[Number(key) - 1]
  return name === undefined || place.value.screen !== "run" ? undefined : () => setQuery("tab", name)
}

/** Goes to the next row of a tone, and to the first one after the last. */
export const toNext = (tone: "error" | "waiting"): void => {
  const rows = (run.value?.journal.rows ?? []).filter((row) => row.tone === tone)
  const from = isLive.value ? 0 : revision.value
  const found = rows.find((row) => row.revision > from) ?? rows[0]
  if (found !== undefined) setRevision(found.revision)
}

/** Goes to the user's message before or after the top of the view. */
const toMessage = (by: number): void => {
  const list = document.querySelector(".messages")
  if (list === null) return
  const { top } = list.getBoundingClientRect()
  const places = [...list.querySelectorAll(".bubble")].map((bubble) => bubble.getBoundingClientRect().top - top)
  const next = by < 0 ? places.findLast((place) => place < -1) : places.find((place) => place > 20)
  if (next !== undefined) list.scrollTop += next - 8
}

const toTurn = (by: number): void => {
  if (place.value.screen === "chat") return toMessage(by)
  const starts = (run.value?.journal.rows ?? []).filter(({ type }) => type === "turn_started")
  const at = (stateAt.value?.turns.length ?? 0) - (stateAt.value?.currentTurn === undefined ? 1 : 0)
  const start = starts[Math.max(0, Math.min(at + by, starts.length - 1))]
  if (start !== undefined) setRevision(start.revision)
}
