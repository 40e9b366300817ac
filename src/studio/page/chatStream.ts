/** Replies that stream. Each is drawn until the journal has its message, and for good if it never gets one. */

import { signal } from "@preact/signals"
import type { ChatRun } from "../internal/guestRun.ts"
import { inTab } from "./browserStorage.ts"
import type { LiveEvent } from "./source.ts"

/** The reply of a turn so far. */
export interface Spoken {
  readonly turn: number
  readonly text: string
  readonly thinking: string
}

const spoken = signal<ReadonlyMap<string, ReadonlyArray<Spoken>>>(new Map())

export const forgetSpoken = (): void => {
  spoken.value = new Map()
}

/** Returns the replies of a run that its journal does not have. */
export const spokenIn = ({ currentTurn, runId, turns }: ChatRun): ReadonlyArray<Spoken> => {
  const found = spoken.value.get(runId) ?? keptOf(runId)
  const written = turns.length + (currentTurn?.message === undefined ? 0 : 1)
  return found.filter(({ turn }) => turn > written)
}

/** Returns a function that collects the replies of a run from its events. */
export const listenTo = (runId: string): ((event: LiveEvent) => void) => {
  let block = ""
  const add = (text: string, thinking: string) => {
    const replies = spoken.value.get(runId) ?? []
    const last = replies.at(-1)
    if (last === undefined) return
    put(runId, replies.with(-1, { ...last, text: last.text + text, thinking: last.thinking + thinking }))
  }
  return (event) => {
    if (event.runId !== runId) return
    if (event.type === "model_started" || event.type === "model_restarted") {
      const turn = (event.step ?? 0) + 1
      const before = (spoken.value.get(runId) ?? []).filter((one) => one.turn !== turn)
      put(runId, [...before, { turn, text: "", thinking: "" }])
      block = ""
    } else if (event.type === "run_failed" || event.type === "run_cancelled") keep(runId)
    else if (event.type === "block_start") block = event.blockType ?? ""
    else if (event.type === "block_complete") block = ""
    else if (event.type === "text_chunk" || (event.type === "block_content" && block === "final")) {
      add(event.text ?? "", "")
    } else if (event.part?.type === "reasoning-delta") add("", event.part.delta ?? "")
  }
}

const put = (runId: string, replies: ReadonlyArray<Spoken>) => {
  spoken.value = new Map(spoken.value).set(runId, replies)
}

// ---------------------------------------------------------------- replies that ended early

const keyOf = (runId: string) => `kernai.spoken.${runId}`

/** Keeps the last reply of a run for the time that this tab is open: no journal has it. */
const keep = (runId: string) => {
  const last = spoken.value.get(runId)?.at(-1)
  if (last !== undefined && last.text !== "" && last.text.length <= 100_000) {
    inTab.set(keyOf(runId), `${last.turn}\n${last.text}`)
  }
}

const keptOf = (runId: string): ReadonlyArray<Spoken> => {
  const [, turn, text = ""] = /^(\d+)\n([^]*)$/.exec(inTab.get(keyOf(runId)) ?? "") ?? []
  return turn === undefined ? [] : [{ turn: Number(turn), text, thinking: "" }]
}
