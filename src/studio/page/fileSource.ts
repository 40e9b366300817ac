/** The data of an exported file: compressed records and media in inert elements. */

import { advance, type RunRecord, type RunState } from "../../RunState.ts"
import { statusOf } from "../../store-kit/StoreRules.ts"
import type { RunLine } from "../internal/studioData.ts"
import { titleOf } from "../internal/runTitle.ts"
import { rowsOf } from "./rows.ts"
import type { Source } from "./source.ts"

const unpack = async (text: string): Promise<unknown> => {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))
  return new Response(stream).json()
}

const isRecords = (value: unknown): value is ReadonlyArray<RunRecord> => Array.isArray(value)

const isMedia = (value: unknown): value is ReadonlyArray<{ readonly id: string; readonly url: string }> =>
  Array.isArray(value)

/** Reads the data of this document. */
export const open = async (): Promise<Source> => {
  const journals = new Map<string, Array<RunRecord>>()
  const media = new Map<string, string>()
  for (const element of document.querySelectorAll<HTMLElement>("script[data-kind]")) {
    const value = await unpack(element.textContent ?? "")
    if (element.dataset["kind"] === "media" && isMedia(value)) for (const one of value) media.set(one.id, one.url)
    else if (isRecords(value)) {
      for (const record of value) {
        const journal = journals.get(record.runId) ?? []
        journal.push(record)
        journals.set(record.runId, journal)
      }
    }
  }
  const lines = [...journals.values()].map(lineOf)
  const none = () => Promise.reject(new Error("an exported run cannot be changed"))
  return {
    isFile: true,
    info: async () => ({ readOnly: true, scenarios: false, evaluations: false, agents: [], models: [], inputs: {} }),
    runs: async ({ rootRunId }) => ({
      runs: rootRunId === undefined ? lines.filter(({ parentRunId }) => parentRunId === undefined) : lines
    }),
    overview: none,
    records: async (runId, after, limit) => {
      const records = journals.get(runId) ?? []
      return { records: records.slice(after, after + limit), revision: records.length }
    },
    mediaUrl: (_, id) => media.get(id) ?? "",
    exportUrl: () => "",
    followWaiting: () => () => undefined,
    waiting: async () => [],
    questions: async () => [],
    answer: none,
    cancel: none,
    retry: none,
    tag: none,
    needy: async () => [],
    requeue: none,
    prune: none,
    processes: async () => ({ processes: [], drains: [] }),
    drain: none,
    undrain: none,
    fork: none,
    scenarios: none,
    dataSets: none,
    addRow: none,
    scores: none,
    score: none,
    experiments: none,
    experiment: none,
    pageUrl: () => "about:blank",
    conversations: async () => ({ lines: [] }),
    rename: none,
    remove: none,
    ask: none,
    follow: () => () => undefined
  }
}

const lineOf = (records: ReadonlyArray<RunRecord>): RunLine => {
  let state: RunState | undefined
  let errors = 0
  for (const record of records) {
    state = advance(state, record)
    errors += rowsOf(record).filter(({ tone }) => tone === "error").length
  }
  if (state === undefined) throw new Error("an exported journal has a record")
  const { agent, caller, createdAt, parentRunId, revision, rootRunId, runId, status, updatedAt, version } = state
  return {
    runId,
    rootRunId,
    parentRunId,
    agent,
    version,
    caller,
    revision,
    createdAt,
    updatedAt,
    turns: state.turns.length,
    title: titleOf(agent, state.input.at(-1)).slice(0, 200),
    errors,
    costUsd: state.costUsd,
    tokens: state.unreportedTurns > 0 ? undefined : state.usage.inputTokens + state.usage.outputTokens,
    status: statusOf(status)
  }
}
