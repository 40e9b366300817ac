/** What can be done with the selected runs. */

import type { RunLine } from "../internal/studioData.ts"
import { compareAddress, mostCompared } from "./compareView.tsx"
import { counted } from "./format.ts"
import { Icon, type IconName } from "./icons.tsx"
import { attempt, canChange, data } from "./pageStore.ts"
import { readRuns, runs, selected } from "./runsStore.ts"
import { TagMenu } from "./tagMenu.tsx"
import { say } from "./toasts.tsx"

const cancellable: ReadonlySet<string> = new Set(["queued", "running", "waiting", "interrupted"])
const retryable: ReadonlySet<string> = new Set(["failed", "no_answer", "interrupted"])

/** Downloads the exported file of a run. */
const download = (runId: string): Promise<void> => {
  const link = Object.assign(document.createElement("a"), { href: data().exportUrl(runId), download: "" })
  link.click()
  // Browsers drop downloads that start at once.
  return new Promise((resolve) => setTimeout(resolve, 300))
}

/** Acts on each run, one after the other, and says how many took it. */
const actOn = async (lines: ReadonlyArray<RunLine>, done: string, act: (runId: string) => Promise<void>) => {
  let count = 0
  for (const { runId } of lines) if (await attempt(() => act(runId))) count++
  say(`${done} ${counted(count, "run")}`)
  selected.value = new Set()
  await attempt(readRuns)
}

export const BulkBar = () => {
  const lines = runs.value.filter(({ runId }) => selected.value.has(runId))
  if (lines.length === 0) return null
  const ofStatus = (statuses: ReadonlySet<string>) => lines.filter(({ status }) => statuses.has(status.type))
  return (
    <div class="bulk" role="group" aria-label="Selected runs">
      <b>{lines.length} selected</b>
      {canChange.value && (
        <>
          <Act
            icon="square"
            name="Cancel"
            lines={ofStatus(cancellable)}
            act={(lines) => actOn(lines, "Cancelled", data().cancel)}
          />
          <Act
            icon="rotate-ccw"
            name="Retry"
            lines={ofStatus(retryable)}
            act={(lines) => actOn(lines, "Offered again", data().retry)}
          />
        </>
      )}
      {canChange.value && <TagMenu lines={lines} />}
      {lines.length > 1 && lines.length <= mostCompared && (
        <a class="button" href={compareAddress(lines.map(({ runId }) => runId).toReversed())}>
          <Icon name="columns-3" /> Compare {lines.length}
        </a>
      )}
      <Act icon="download" name="Export" lines={lines} act={(lines) => actOn(lines, "Exported", download)} />
      <button class="plain" onClick={() => (selected.value = new Set())}>
        Clear
      </button>
    </div>
  )
}

interface ActProps {
  readonly icon: IconName
  readonly name: string
  readonly lines: ReadonlyArray<RunLine>
  readonly act: (lines: ReadonlyArray<RunLine>) => Promise<void>
}

const Act = ({ act, icon, lines, name }: ActProps) => (
  <button disabled={lines.length === 0} onClick={() => void act(lines)}>
    <Icon name={icon} /> {name} {lines.length}
  </button>
)
