/** A conversation with an agent: each question is a run, and the runs before it are its history. */

import { signal } from "@preact/signals"
import { childRunId } from "../../Call.ts"
import type { ChatRun, ChatTurn } from "../internal/guestRun.ts"
import { type Choices, choose, runIdOf, writeChoices } from "./chatBranches.ts"
import { forgetSpoken, listenTo } from "./chatStream.ts"
import { Journal } from "./journal.ts"
import { isMedia } from "./mediaTab.tsx"
import { attempt, data, setQuery } from "./pageStore.ts"
import { type Link, Refused } from "./source.ts"

interface Place {
  /** The number of the question in the conversation. */
  readonly place: number
  readonly variant: number
  /** How many variants the question has. */
  readonly variants: number
}

/** One question of the conversation, and the run that answers it. */
export interface Exchange extends Place {
  readonly runId: string
  readonly state: ChatRun
  /** The runs below it, by their ids. */
  readonly below: ReadonlyMap<string, ChatRun>
}

export const exchanges = signal<ReadonlyArray<Exchange>>([])

/** Whether the connection to a run is lost. */
export const isReconnecting = signal(false)

let leave: () => void = () => undefined
let journals = new Map<string, Journal>()

let opened = ""

/** Reads a conversation, and follows its last run. Where no variant is chosen, the last one is shown. */
export const openConversation = async (conversation: string, wanted: Choices): Promise<void> => {
  closeConversation()
  if (!opened.startsWith(`${conversation} `)) {
    journals = new Map()
    exchanges.value = []
    forgetSpoken()
  }
  const opening = `${conversation} ${writeChoices(wanted)}`
  opened = opening
  const found: Array<Exchange> = []
  let choices: Choices = new Map()
  for (let place = 1; ; place++) {
    const variants = await variantsAt(conversation, choices, place)
    if (variants === 0) break
    const variant = Math.min(wanted.get(place) ?? variants, variants)
    choices = choose(choices, place, variant)
    const exchange = await exchangeOf(runIdOf(conversation, choices, place), { place, variant, variants })
    if (exchange !== undefined) found.push(exchange)
  }
  if (opened !== opening) return
  exchanges.value = found
  const last = found.at(-1)
  if (last !== undefined && !isOver(last)) follow(last)
}

/** Returns how many variants of a place there are. */
const variantsAt = async (conversation: string, choices: Choices, place: number): Promise<number> => {
  for (let variant = 1; ; variant++) {
    const runId = runIdOf(conversation, choose(choices, place, variant), place)
    if (!(await isThere(runId))) return variant - 1
  }
}

const isThere = async (runId: string): Promise<boolean> =>
  (await ifFound<unknown>(() => data().chatRun?.(runId) ?? data().records(runId, 0, 1))) !== undefined

/** Returns the way through the conversation that is shown. */
export const choicesIn = (until = Infinity): Choices =>
  new Map(exchanges.value.flatMap(({ place, variant }) => (place < until ? [[place, variant]] : [])))

/** Returns undefined for what does not exist. */
const ifFound = async <A>(read: () => Promise<A>): Promise<A | undefined> => {
  try {
    return await read()
  } catch (error) {
    if (error instanceof Refused && error.status === 404) return undefined
    throw error
  }
}

export const closeConversation = (): void => leave()

export const isUnderWay = (exchange: Exchange | undefined): boolean =>
  exchange?.state.status.type === "running" || exchange?.state.status.type === "paused"

const isOver = ({ state }: Exchange): boolean => state.status.type === "completed" || state.status.type === "cancelled"

/** Reads a run, or the new records of its journal. Returns undefined for a run that does not exist. */
const stateOf = (runId: string): Promise<ChatRun | undefined> =>
  ifFound(async () => {
    const shown = await data().chatRun?.(runId)
    if (shown !== undefined) return shown
    const journal = journals.get(runId) ?? new Journal()
    journals.set(runId, journal)
    for (;;) {
      const { records, revision } = await data().records(runId, journal.revision, 2_000)
      journal.add(records)
      if (records.length === 0 || journal.revision >= revision) return journal.stateAt(journal.revision)
    }
  })

const deepest = 4

const exchangeOf = async (runId: string, { place, variant, variants }: Place): Promise<Exchange | undefined> => {
  const state = await stateOf(runId)
  if (state === undefined) return undefined
  const below = new Map<string, ChatRun>()
  const descend = async (parent: ChatRun, depth: number): Promise<void> => {
    if (depth > deepest) return
    for (const childId of turnsOf(parent).flatMap(childrenOf)) {
      const child = await stateOf(childId)
      if (child === undefined) continue
      below.set(childId, child)
      await descend(child, depth + 1)
    }
  }
  await descend(state, 1)
  return { place, variant, variants, runId, state, below }
}

/** Returns the turns of a run, including the open one. */
export const turnsOf = ({ currentTurn, turns }: ChatRun): ReadonlyArray<ChatTurn> =>
  currentTurn === undefined ? turns : [...turns, currentTurn]

/** Returns the ids of the runs that the calls of a turn started. */
export const childrenOf = ({ completed, inFlight, turnId }: ChatTurn): ReadonlyArray<string> =>
  [...completed, ...inFlight].flatMap((call) => childRunId(turnId, call) ?? [])

/** Sends the next question with files. */
export const send = async (
  agent: string,
  conversation: string,
  text: string,
  files: ReadonlyArray<File>
): Promise<void> => {
  const place = exchanges.value.length + 1
  const at = { runId: runIdOf(conversation, choicesIn(), place), place, variant: 1, variants: 1 }
  await start(agent, at, text, files)
  await refresh(at)
  follow(at)
}

/** Asks a text instead of a question, with its files, as another variant. */
export const askInstead = async (
  agent: string,
  conversation: string,
  text: string,
  instead: Exchange
): Promise<void> => {
  const { place } = instead
  const choices = choose(choicesIn(place), place, instead.variants + 1)
  await start(agent, { place, runId: runIdOf(conversation, choices, place) }, text, await filesOf(instead))
  setQuery("line", writeChoices(choices))
}

/** Continues a run that failed or gave no answer. What it did is not done again. */
export const retry = async (exchange: Exchange): Promise<void> => {
  await data().retry(exchange.runId)
  await refresh(exchange)
  follow(exchange)
}

const start = async (
  agent: string,
  { place, runId }: Pick<At, "place" | "runId">,
  text: string,
  files: ReadonlyArray<File>
): Promise<void> => {
  // A stopped or failed question has no messages for the history.
  const before = exchanges.value.flatMap((one) =>
    one.place < place && one.state.status.type === "completed" ? [one.runId] : []
  )
  await data().ask({ agent, runId, before, text, files })
}

/** Reads the files of a question, which another run needs as its own. */
const filesOf = ({ runId, state }: Exchange): Promise<ReadonlyArray<File>> =>
  Promise.all(
    (state.input.at(-1)?.content ?? []).flatMap((part) => {
      if (!isMedia(part) || part.fileId === undefined) return []
      const { fileId, mediaType = "application/octet-stream" } = part
      return [fileAt(data().mediaUrl(runId, fileId), fileId, mediaType)]
    })
  )

const fileAt = async (url: string, name: string, type: string): Promise<File> => {
  const response = await fetch(url)
  if (!response.ok) throw new Refused(response.status, `the file ${name} is gone`)
  return new File([await response.blob()], name, { type })
}

interface At extends Place {
  readonly runId: string
}

const refresh = async (at: At): Promise<void> => {
  const exchange = await exchangeOf(at.runId, at)
  if (exchange === undefined) return
  const index = exchanges.value.findIndex(({ runId }) => runId === at.runId)
  exchanges.value = index === -1 ? [...exchanges.value, exchange] : exchanges.value.with(index, exchange)
}

/** How long a page waits before it opens a connection again that the browser gave up. */
const pause = 2_000

const follow = (at: At): void => {
  const { runId } = at
  closeConversation()
  let isGone = false
  let isReading = false
  let isBehind = false
  let timer: ReturnType<typeof setTimeout> | undefined
  const read = async () => {
    if (isReading) {
      isBehind = true
      return
    }
    isReading = true
    do {
      isBehind = false
      await attempt(() => refresh(at))
    } while (isBehind && !isGone)
    isReading = false
  }
  const listen = listenTo(runId)
  const onLink = (link: Link) => {
    isReconnecting.value = link !== "open"
    // The server ends the stream of a run that is over.
    if (link === "closed" && isUnderWay(exchanges.value.find((one) => one.runId === runId))) {
      timer = setTimeout(() => follow(at), pause)
    }
  }
  const stop = data().follow(
    runId,
    0,
    (event) => {
      listen(event)
      if (event.revision !== undefined) void read()
    },
    onLink
  )
  leave = () => {
    isGone = true
    isReconnecting.value = false
    clearTimeout(timer)
    stop()
  }
}
