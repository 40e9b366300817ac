/** The open tab of a run. */

import { BlocksTab } from "./blocksTab.tsx"
import { ConversationTab } from "./conversationTab.tsx"
import { ExplainTab } from "./explainTab.tsx"
import { Inspector } from "./inspector.tsx"
import { MediaTab } from "./mediaTab.tsx"
import { revision, run, setRevision, state, eventFilter, events } from "./openRun.ts"
import { tab } from "./pageStore.ts"
import { StateTab } from "./stateTab.tsx"
import { UsageTab } from "./usageTab.tsx"
import { VirtualRows } from "./virtualRows.tsx"

export const TabBody = () => {
  if (state.value === undefined) return null
  switch (tab.value) {
    case "Conversation":
      return <ConversationTab />
    case "Blocks":
      return <BlocksTab />
    case "Events":
      return <EventsTab />
    case "State":
      return <StateTab />
    case "Media":
      return <MediaTab />
    case "Usage":
      return <UsageTab />
    case "Explain":
      return <ExplainTab />
  }
}

const EventsTab = () => {
  const rows = events.value
  const started = run.value?.journal.rows[0]?.at ?? 0
  const at = revision.value
  return (
    <>
      <input
        data-filter
        type="search"
        aria-label="Filter events"
        placeholder="Filter: a type or words   ( / )"
        value={eventFilter.value}
        onInput={(event) => (eventFilter.value = event.currentTarget.value)}
      />
      <VirtualRows
        label="Events"
        rows={rows}
        selected={rows.findLastIndex((row) => row.revision === at)}
        onSelect={(row) => setRevision(row.revision)}
        level={() => 1}
        draw={(row) => (
          <span class={`event ${row.tone}`}>
            <span class="quiet">{row.revision}</span>
            <span>{row.type}</span>
            <span class="words">{row.text}</span>
            <span class="quiet">{((row.at - started) / 1_000).toFixed(2)} s</span>
          </span>
        )}
      />
      <Inspector />
    </>
  )
}
