/** The tags of the selected runs, which people give and take away. */

import { useSignal } from "@preact/signals"
import type { RunLine } from "../internal/studioData.ts"
import { counted } from "./format.ts"
import { Icon } from "./icons.tsx"
import { Menu } from "./menu.tsx"
import { attempt, data } from "./pageStore.ts"
import { readRuns } from "./runsStore.ts"
import { say } from "./toasts.tsx"

export const TagMenu = ({ lines }: { lines: ReadonlyArray<RunLine> }) => {
  const typed = useSignal("")
  const tags = [...new Set(lines.flatMap(({ tags = [] }) => tags))].toSorted()
  const change = async (change: "add" | "remove", tag: string): Promise<void> => {
    const runIds = lines.map(({ runId }) => runId)
    if (!(await attempt(() => data().tag(change, tag, runIds)))) return
    say(`${change === "add" ? "Tagged" : "Took the tag from"} ${counted(runIds.length, "run")}`)
    await attempt(readRuns)
  }
  const add = (event: Event): void => {
    event.preventDefault()
    // A blank would end the tag in a filter.
    const tag = typed.value.trim().replace(/\s+/g, "-")
    typed.value = ""
    if (tag !== "") void change("add", tag)
  }
  return (
    <Menu icon="tag" label="Tag">
      {tags.map((tag) => (
        <p key={tag} class="view">
          {tag}
          <button class="plain" aria-label={`Remove ${tag}`} onClick={() => void change("remove", tag)}>
            <Icon name="x" />
          </button>
        </p>
      ))}
      <form class="view" onSubmit={add}>
        <input
          aria-label="New tag"
          placeholder="New tag"
          maxLength={64}
          value={typed.value}
          onInput={(event) => (typed.value = event.currentTarget.value)}
        />
        <button>Add</button>
      </form>
    </Menu>
  )
}
