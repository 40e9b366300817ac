/** The turns and calls of a run, with the runs below it. Only visible rows are in the document. */

import type { RunLine } from "../internal/studioData.ts"
import { duration, named } from "./format.ts"
import { revision, run, setRevision, openTree, folded } from "./openRun.ts"
import { runAddress } from "./pageStore.ts"
import type { Node } from "./rows.ts"
import { StatusShape } from "./status.tsx"
import { VirtualRows } from "./virtualRows.tsx"

export const TreePanel = () => {
  const family = run.value?.family ?? []
  const parent = run.value?.journal.stateAt(1)?.parentRunId
  return (
    <aside class="tree" aria-label="Tree">
      {parent !== undefined && <a href={runAddress(parent)}>↑ run above</a>}
      <VirtualRows
        label="Turns and calls"
        rows={openTree.value}
        selected={openTree.value.findLastIndex((node) => node.revision <= revision.value)}
        onSelect={(node) => setRevision(node.revision)}
        draw={(node) => <TreeRow node={node} />}
        level={(node) => node.level}
      />
      <Children lines={family.filter(({ parentRunId }) => parentRunId === run.value?.runId)} />
    </aside>
  )
}

const TreeRow = ({ node }: { node: Node }) => (
  <span class={`node level${node.level} ${node.status}`}>
    <span>
      {node.level === 1 && folded.value.has(node.key) && "▸ "}
      <StatusShape status={node.status} /> {node.label}
    </span>
    <span class="quiet">
      {node.errors > 0 && <span class="badge error">{node.errors} failed</span>}
      {node.waits > 0 && <span class="badge waiting">{node.waits} asked</span>}
      {node.level === 2 && node.status} {node.durationMs !== undefined && duration(node.durationMs)}
    </span>
  </span>
)

const Children = ({ lines }: { lines: ReadonlyArray<RunLine> }) =>
  lines.length === 0 ? null : (
    <>
      <h2>Runs below</h2>
      <ul>
        {lines.map(({ agent, runId, status }) => (
          <li key={runId}>
            <a data-row href={runAddress(runId)}>
              <StatusShape status={status.type} /> {agent} <span class="quiet">{named(status.type)}</span>
            </a>
          </li>
        ))}
      </ul>
    </>
  )
