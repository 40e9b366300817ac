/** A conversation with an agent: each question is a run, and the runs before it are its history. */

import { signal } from "@preact/signals"
import { childRunId } from "../../Call.ts"
import type { RunState, Turn } from "../../RunState.ts"
import { forgetSpoken, listenTo } from "./chatStream.ts"
import { Journal } from "./journal.ts"
import { attempt, data } from "./pageStore.ts"
import { Refused } from "./source.ts"

/** One question of the conversation, and the run that answers it. */
export interface Exchange {
  readonly runId: string
  readonly state: RunState
  /** The runs below it, by their ids. */
  readonly below: ReadonlyMap<string, RunState>
}

export const exchanges = signal<ReadonlyArray<Exchange>>([])
export const files = signal<ReadonlyArray<File>>([])

/**
 * Returns the id of a run of a conversation. It includes the conversation, so that a list of runs is a list of
 * conversations.
 */
export const runIdOf = (conversation: string, index: number): string => `chat.${conversation}.${index}`

export const conversationOf = (runId: string): string | undefined => /^chat\.([\w-]+)\.1$/.exec(runId)?.[1]

let leave: () => void = () => undefined
let journals = new Map<string, Journal>()

/** Reads a conversation, and follows its last run. */
export const openConversation = async (conversation: string): Promise<void> => {
  closeConversation()
  journals = new Map()
  exchanges.value = []
  forgetSpoken()
  for (let index = 1; ; index++) {
    const exchange = await exchangeOf(runIdOf(conversation, index))
    if (exchange === undefined) break
    exchanges.value = [...exchanges.value, exchange]
  }
  const last = exchanges.value.at(-1)
  if (last !== undefined && !isOver(last)) follow(last.runId)
}

export const closeConversation = (): void => leave()

const isOver = ({ state }: Exchange): boolean => state.status.type === "completed" || state.status.type === "cancelled"

/** Reads the new records of a journal. Returns undefined for a run that does not exist. */
const stateOf = async (runId: string): Promise<RunState | undefined> => {
  const journal = journals.get(runId) ?? new Journal()
  journals.set(runId, journal)
  try {
    for (;;) {
      const { records, revision } = await data().records(runId, journal.revision, 2_000)
      journal.add(records)
      if (records.length === 0 || journal.revision >= revision) return journal.stateAt(journal.revision)
    }
  } catch (error) {
    if (error instanceof Refused && error.status === 404) return undefined
    throw error
  }
}

const deepest = 4

const exchangeOf = async (runId: string): Promise<Exchange | undefined> => {
  const state = await stateOf(runId)
  if (state === undefined) return undefined
  const below = new Map<string, RunState>()
  const descend = async (parent: RunState, depth: number): Promise<void> => {
    if (depth > deepest) return
    for (const childId of turnsOf(parent).flatMap(childrenOf)) {
      const child = await stateOf(childId)
      if (child === undefined) continue
      below.set(childId, child)
      await descend(child, depth + 1)
    }
  }
  await descend(state, 1)
  return { runId, state, below }
}

/** Returns the turns of a run, including the open one. */
export const turnsOf = ({ currentTurn, turns }: RunState): ReadonlyArray<Turn> =>
  currentTurn === undefined ? turns : [...turns, currentTurn]

/** Returns the ids of the runs that the calls of a turn started. */
export const childrenOf = ({ completed, inFlight, turnId }: Turn): ReadonlyArray<string> =>
  [...completed, ...inFlight].flatMap((call) => childRunId(turnId, call) ?? [])

/** Sends a question with the chosen files. */
export const send = async (agent: string, conversation: string, text: string): Promise<void> => {
  const runId = runIdOf(conversation, exchanges.value.length + 1)
  const media = await Promise.all(files.value.map((file) => data().upload(runId, file)))
  // A stopped or failed question has no messages for the history.
  const answered = exchanges.value.filter(({ state }) => state.status.type === "completed")
  const history = (await Promise.all(answered.map((one) => data().messages(one.runId)))).flat()
  const parts = media.map(({ id, kind, mimeType }) => ({ type: kind, file_id: id, media_type: mimeType }))
  await data().start({ agent, runId, history, input: [{ type: "text", text }, ...parts] })
  files.value = []
  await refresh(runId)
  follow(runId)
}

const refresh = async (runId: string): Promise<void> => {
  const exchange = await exchangeOf(runId)
  if (exchange === undefined) return
  const at = exchanges.value.findIndex((one) => one.runId === runId)
  exchanges.value = at === -1 ? [...exchanges.value, exchange] : exchanges.value.with(at, exchange)
}

const follow = (runId: string): void => {
  closeConversation()
  let isGone = false
  let isReading = false
  let isBehind = false
  const read = async () => {
    if (isReading) {
      isBehind = true
      return
    }
    isReading = true
    do {
      isBehind = false
      await attempt(() => refresh(runId))
    } while (isBehind && !isGone)
    isReading = false
  }
  const listen = listenTo(runId)
  const stop = data().follow(runId, 0, (event) => {
    listen(event)
    if (event.revision !== undefined) void read()
  })
  leave = () => {
    isGone = true
    stop()
  }
}
