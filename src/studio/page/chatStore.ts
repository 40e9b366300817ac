/** A conversation with an agent: each question is a run, and the runs before it are its history. */

import { signal } from "@preact/signals"
import type { RunState } from "../../RunState.ts"
import { Journal } from "./journal.ts"
import { attempt, data } from "./pageStore.ts"
import { Refused } from "./source.ts"

/** One question of the conversation, and the run that answers it. */
export interface Exchange {
  readonly runId: string
  readonly state: RunState
}

export const exchanges = signal<ReadonlyArray<Exchange>>([])
/** The text that streams now. */
export const streaming = signal("")
export const thinking = signal(false)
export const files = signal<ReadonlyArray<File>>([])

/** The id of a run of a conversation; it names the conversation, so that a list of runs is a list of conversations. */
export const runIdOf = (conversation: string, index: number): string => `chat.${conversation}.${index}`

export const conversationOf = (runId: string): string | undefined => /^chat\.([\w-]+)\.1$/.exec(runId)?.[1]

let leave: () => void = () => undefined

/** Reads a conversation, and follows its last run. */
export const openConversation = async (conversation: string): Promise<void> => {
  leave()
  exchanges.value = []
  for (let index = 1; ; index++) {
    const state = await stateOf(runIdOf(conversation, index))
    if (state === undefined) break
    exchanges.value = [...exchanges.value, { runId: state.runId, state }]
  }
  const last = exchanges.value.at(-1)
  if (last !== undefined) follow(last.runId)
}

export const closeConversation = (): void => leave()

const stateOf = async (runId: string): Promise<RunState | undefined> => {
  const journal = new Journal()
  try {
    for (;;) {
      const { records, revision } = await data().records(runId, journal.revision)
      journal.add(records)
      if (records.length === 0 || journal.revision >= revision) return journal.stateAt(journal.revision)
    }
  } catch (error) {
    if (error instanceof Refused && error.status === 404) return undefined
    throw error
  }
}

/** Sends a question with the files that were chosen. */
export const send = async (agent: string, conversation: string, text: string): Promise<void> => {
  const runId = runIdOf(conversation, exchanges.value.length + 1)
  const media = await Promise.all(files.value.map((file) => data().upload(runId, file)))
  const history = (await Promise.all(exchanges.value.map((one) => data().messages(one.runId)))).flat()
  const parts = media.map(({ id, kind, mimeType }) => ({ type: kind, file_id: id, media_type: mimeType }))
  await data().start({ agent, runId, history, input: [{ type: "text", text }, ...parts] })
  files.value = []
  await refresh(runId)
  follow(runId)
}

const refresh = async (runId: string): Promise<void> => {
  const state = await stateOf(runId)
  if (state === undefined) return
  const others = exchanges.value.filter((one) => one.runId !== runId)
  exchanges.value = [...others, { runId, state }]
}

const follow = (runId: string): void => {
  leave()
  let block = ""
  leave = data().follow(runId, (event) => {
    if (event.runId !== runId) return
    if (event.type === "block_start") block = event.blockType ?? ""
    if (event.type === "block_complete") block = ""
    if (event.type === "text_chunk" || (event.type === "block_content" && block === "final")) {
      streaming.value += event.text ?? ""
    }
    thinking.value = event.type === "stream_part" || event.type === "model_started"
    if (event.revision === undefined) return
    void attempt(async () => {
      await refresh(runId)
      if (event.type === "model_completed" || event.type === "run_completed") streaming.value = ""
    })
  })
}
