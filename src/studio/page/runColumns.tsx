/** The columns of the list of runs. */

import { computed, signal } from "@preact/signals"
import type { ComponentChildren } from "preact"
import type { RunLine } from "../internal/studioData.ts"
import { ago, cost, duration, excerpt, reasonOf } from "./format.ts"
import { runAddress } from "./pageStore.ts"
import { setFilter } from "./runsStore.ts"
import { StatusChip } from "./status.tsx"

export interface Column {
  readonly id: string
  /** The value that orders lines. */
  readonly value: (line: RunLine) => string | number
  readonly draw: (line: RunLine) => ComponentChildren
  readonly isNumber?: true
}

const tookOf = ({ createdAt, status, updatedAt }: RunLine): number =>
  (status.type === "running" ? Date.now() : updatedAt) - createdAt

const known = (value: number | undefined, draw: (value: number) => string): string =>
  value === undefined ? "–" : draw(value)

export const columns: ReadonlyArray<Column> = [
  {
    id: "status",
    value: ({ status }) => status.type,
    draw: ({ status }) => <StatusChip status={status.type} />
  },
  {
    id: "input",
    value: ({ title }) => title,
    draw: (line) => (
      <>
        <a data-row data-run={line.runId} href={runAddress(line.runId)}>
          {excerpt(line.title, 120) || line.runId}
        </a>
        <em>{reasonOf(line.status)}</em>
      </>
    )
  },
  {
    id: "tags",
    value: ({ tags = [] }) => tags.join(" "),
    draw: ({ tags = [] }) =>
      tags.map((tag) => (
        <button key={tag} class="tag" title={`Runs with the tag ${tag}`} onClick={() => setFilter(`tag:${tag}`)}>
          {tag}
        </button>
      ))
  },
  {
    id: "agent",
    value: ({ agent }) => agent,
    draw: ({ agent, version }) => `${agent}${version === undefined ? "" : ` v${version}`}`
  },
  {
    id: "caller",
    value: ({ caller }) => caller?.id ?? "",
    draw: ({ caller }) => [caller?.tenant, caller?.id].filter((part) => part !== undefined).join(" · ")
  },
  { id: "model", value: ({ model = "" }) => model, draw: ({ model }) => model },
  { id: "duration", value: tookOf, draw: (line) => duration(tookOf(line)), isNumber: true },
  { id: "turns", value: ({ turns }) => turns, draw: ({ turns }) => turns, isNumber: true },
  {
    id: "tokens",
    value: ({ tokens = 0 }) => tokens,
    draw: ({ tokens }) => known(tokens, (count) => count.toLocaleString("en")),
    isNumber: true
  },
  { id: "cost", value: ({ costUsd = 0 }) => costUsd, draw: ({ costUsd }) => known(costUsd, cost), isNumber: true },
  {
    id: "errors",
    value: ({ errors = 0 }) => errors,
    draw: ({ errors = 0 }) => (errors === 0 ? "" : <span class="badge error">{errors} failed</span>)
  },
  {
    id: "age",
    value: ({ createdAt }) => Date.now() - createdAt,
    draw: ({ createdAt }) => <time dateTime={new Date(createdAt).toISOString()}>{ago(createdAt)}</time>,
    isNumber: true
  }
]

const key = "kernai.columns"
const kept = localStorage.getItem(key)

/** The names of the hidden columns. */
export const hidden = signal<ReadonlySet<string>>(new Set(kept?.split(",") ?? ["caller", "model"]))

export const shownColumns = computed(() => columns.filter(({ id }) => !hidden.value.has(id)))

export const toggleColumn = (id: string): void => {
  const others = [...hidden.value].filter((one) => one !== id)
  hidden.value = new Set(others.length === hidden.value.size ? [...others, id] : others)
  localStorage.setItem(key, [...hidden.value].join(","))
}
