/** A conversation with an agent: each question is a run, and the runs before it are its history. */

import { signal } from "@preact/signals"
import { childRunId } from "../../Call.ts"
import type { RunState, Turn } from "../../RunState.ts"
import { Journal } from "./journal.ts"
import { attempt, data } from "./pageStore.ts"
import { type LiveEvent, Refused } from "./source.ts"

/** One question of the conversation, and the run that answers it. */
export interface Exchange {
  readonly runId: string
  readonly state: RunState
  /** The runs below it, by their ids. */
  readonly below: ReadonlyMap<string, RunState>
}

export const exchanges = signal<ReadonlyArray<Exchange>>([])
/** The text that is streaming. */
export const streaming = signal("")
/** The thinking that is streaming. */
export const thinking = signal("")
/** The text of replies that never ended, by the id of their run. */
export const unfinished = signal<ReadonlyMap<string, string>>(new Map())
export const isModelAsked = signal(false)
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
  unfinished.value = new Map()
  for (let index = 1; ; index++) {
    const exchange = await exchangeOf(runIdOf(conversation, index))
    if (exchange === undefined) break
    exchanges.value = [...exchanges.value, exchange]
  }
  const last = exchanges.value.at(-1)
  if (last !== undefined && !isOver(last)) follow(last.runId)
}

export const closeConversation = (): void => {
  leave()
  streaming.value = ""
  thinking.value = ""
  isModelAsked.value = false
}

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
  let block = ""
  const stop = data().follow(runId, 0, (event) => {
    if (event.runId === runId) block = listen(event, block)
    if (event.revision !== undefined) void read()
  })
  leave = () => {
    isGone = true
    stop()
  }
}

const silence = (): string => {
  isModelAsked.value = false
  streaming.value = ""
  thinking.value = ""
  return ""
}

/** Collects the streaming text. Returns the type of the open block. */
const listen = (event: LiveEvent, block: string): string => {
  switch (event.type) {
    case "model_started":
      isModelAsked.value = true
      streaming.value = ""
      thinking.value = ""
      return ""
    case "run_failed":
    case "run_cancelled":
      if (streaming.value !== "") unfinished.value = new Map(unfinished.value).set(event.runId, streaming.value)
      return silence()
    case "model_completed":
    case "run_completed":
      return silence()
    case "block_start":
      return event.blockType ?? ""
    case "block_complete":
      return ""
    case "block_content":
      if (block === "final") streaming.value += event.text ?? ""
      return block
    case "text_chunk":
      streaming.value += event.text ?? ""
      return block
    case "stream_part":
      if (event.part?.type === "reasoning-delta") thinking.value += event.part.delta ?? ""
      return block
    default:
      return block
  }
}
