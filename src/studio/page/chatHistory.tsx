/** The conversations of the store, found by what was asked and answered in them. */

import { batch, signal } from "@preact/signals"
import { useEffect } from "preact/hooks"
import type { RunLine } from "../internal/studioData.ts"
import { chatAddress, conversationIn, conversationOf } from "./chatBranches.ts"
import { attempt, data } from "./pageStore.ts"

const lines = signal<ReadonlyArray<RunLine>>([])
const next = signal<string | undefined>(undefined)
const search = signal("")

let asked = 0

/** Reads the conversations again, or their next page. An answer that is overtaken by a newer one is dropped. */
export const readHistory = async (more = false): Promise<void> => {
  const turn = ++asked
  const page = await data().runs({
    ...(search.value.trim() === "" ? {} : { search: search.value }),
    ...(more && next.value !== undefined ? { after: next.value } : {})
  })
  if (turn !== asked) return
  batch(() => {
    lines.value = more ? [...lines.value, ...page.runs] : page.runs
    next.value = page.next
  })
}

/** Returns one line for each conversation: that of its first question, or of one that was found. */
const conversations = (): ReadonlyMap<string, RunLine> => {
  const nameOf = search.value.trim() === "" ? conversationOf : conversationIn
  return new Map(
    lines.value.flatMap((line) => {
      const id = nameOf(line.runId)
      return id === undefined ? [] : [[id, line]]
    })
  )
}

export const ChatHistory = ({ conversation }: { conversation: string }) => {
  useEffect(() => {
    search.value = ""
    void attempt(readHistory)
  }, [])
  const found = conversations()
  return (
    <>
      <input
        type="search"
        aria-label="Search conversations"
        placeholder="Search conversations"
        data-filter
        value={search.value}
        onInput={({ currentTarget }) => {
          search.value = currentTarget.value
          void attempt(readHistory)
        }}
      />
      {found.size === 0 && search.value !== "" && <p class="quiet">Nothing found.</p>}
      <ul>
        {Array.from(found, ([id, line]) => (
          <li key={id}>
            <a
              data-row
              href={chatAddress(line.agent, id)}
              {...(id === conversation ? { "aria-current": "page" as const } : {})}
            >
              {line.words.slice(0, 60) || id}
            </a>
          </li>
        ))}
      </ul>
      {next.value !== undefined && (
        <button class="plain" onClick={() => void attempt(() => readHistory(true))}>
          Older conversations
        </button>
      )}
    </>
  )
}
