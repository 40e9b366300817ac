/** One tree over all agents, turns and calls, with their times on a common axis. Only visible rows are in the document. */

import type { Bar, Line } from "../RunTree.ts"
import { duration } from "./format.ts"
import { Icon } from "./icons.tsx"
import { run, setRevision } from "./openRun.ts"
import { go, runAddress } from "./pageStore.ts"
import { StatusShape } from "./status.tsx"
import { axis, folded, openTree, selectedLine, setFolded, shownTime } from "./treeStore.ts"
import { VirtualRows } from "./virtualRows.tsx"

export const TreePanel = () => (
  <aside class="tree" aria-label="Tree">
    <Scale />
    <VirtualRows
      label="Turns and calls"
      rows={openTree.value}
      selected={selectedLine.value}
      onSelect={open}
      onFold={({ key }, isFolded) => setFolded(key, isFolded)}
      draw={(line) => <TreeRow line={line} />}
      level={({ level }) => level}
    />
  </aside>
)

/** Goes to the revision of a line, in its run. */
const open = ({ revision, runId }: Line): void => {
  if (runId === run.value?.runId) setRevision(revision)
  else go(`${runAddress(runId)}?rev=${revision}`)
}

const kinds = ["model", "skill", "waiting"] as const

/** The ticks of the axis, above the rows, and what its colors mean. */
const Scale = () => (
  <div class="scale">
    <span class="legend">
      {kinds.map((kind) => (
        <span key={kind}>
          <i class={`bar ${kind}`} /> {kind}
        </span>
      ))}
    </span>
    <span class="ticks">
      {[0, 1, 2, 3, 4].map((part) => (
        <span key={part}>{part === 0 ? "0 s" : duration((axis.value.length * part) / 4)}</span>
      ))}
    </span>
    <span />
  </div>
)

const TreeRow = ({ line }: { line: Line }) => (
  <span class={`node of-${line.kind} ${line.status}`}>
    <span class="name" style={{ paddingLeft: `${(line.level - 1) * 14}px` }}>
      {folded.value.has(line.key) && <Icon name="chevron-right" />}
      <StatusShape status={line.status} />
      <span>{line.label}</span>
      {line.errors > 0 && <span class="badge error">{line.errors} failed</span>}
      {line.waits > 0 && <span class="badge waiting">{line.waits} asked</span>}
    </span>
    <span class="lane">
      {line.bars.map((bar, index) => (
        <BarOf key={index} bar={bar} />
      ))}
    </span>
    <span class="ms">{tookOf(line.bars)}</span>
  </span>
)

const BarOf = ({ bar: { from, kind, to = shownTime() } }: { bar: Bar }) => {
  const { place } = axis.value
  const [left, right] = [place(from), place(to)]
  return (
    <i
      class={`bar ${kind}`}
      title={`${kind} ${duration(to - from)}`}
      style={{ left: `${left * 100}%`, width: `${(right - left) * 100}%` }}
    />
  )
}

const tookOf = (bars: ReadonlyArray<Bar>): string =>
  bars.length === 0 ? "" : duration(bars.reduce((sum, { from, to = shownTime() }) => sum + to - from, 0))
