/** The conversations of the store, found by what was asked and answered in them. */

import { batch, signal } from "@preact/signals"
import { useEffect } from "preact/hooks"
import type { ConversationLine } from "../internal/ownChats.ts"
import { chatAddress } from "./chatBranches.ts"
import { attempt, data } from "./pageStore.ts"

const lines = signal<ReadonlyArray<ConversationLine>>([])
const next = signal<string | undefined>(undefined)
const search = signal("")

let asked = 0

/** Reads the conversations again, or their next page. An answer that is overtaken by a newer one is dropped. */
export const readHistory = async (more = false): Promise<void> => {
  const turn = ++asked
  const page = await data().conversations(search.value, more ? next.value : undefined)
  if (turn !== asked) return
  batch(() => {
    const known = new Set(more ? lines.value.map(({ id }) => id) : [])
    lines.value = [...(more ? lines.value : []), ...page.lines.filter(({ id }) => !known.has(id))]
    next.value = page.next
  })
}

/** Returns the name that a person gave a conversation. */
export const nameOf = (conversation: string): string | undefined =>
  lines.value.find(({ id }) => id === conversation)?.name

export const ChatHistory = ({ conversation }: { conversation: string }) => {
  useEffect(() => {
    search.value = ""
    void attempt(readHistory)
  }, [])
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
      {lines.value.length === 0 && search.value !== "" && <p class="quiet">Nothing found.</p>}
      <div class="history">
        {byDay(lines.value).map(([day, found]) => (
          <section key={day} aria-label={day}>
            <h2>{day}</h2>
            <ul>
              {found.map((line) => (
                <Line key={line.id} line={line} isOpen={line.id === conversation} />
              ))}
            </ul>
          </section>
        ))}
      </div>
      {next.value !== undefined && (
        <button class="plain" onClick={() => void attempt(() => readHistory(true))}>
          Older conversations
        </button>
      )}
    </>
  )
}

const Line = ({ isOpen, line: { agent, id, name, words } }: { line: ConversationLine; isOpen: boolean }) => (
  <li>
    <a data-row href={chatAddress(agent, id)} {...(isOpen ? { "aria-current": "page" as const } : {})}>
      {name ?? (words.slice(0, 60) || id)}
    </a>
  </li>
)

const days = ["Today", "Yesterday", "Earlier"] as const

/** Returns the conversations of each day, in their order, without empty days. */
const byDay = (all: ReadonlyArray<ConversationLine>) => {
  const midnight = new Date().setHours(0, 0, 0, 0)
  const dayOf = ({ at }: ConversationLine) =>
    at >= midnight ? "Today" : at >= midnight - 86_400_000 ? "Yesterday" : "Earlier"
  return days
    .map((day) => [day, all.filter((line) => dayOf(line) === day)] as const)
    .filter(([, found]) => found.length > 0)
}
