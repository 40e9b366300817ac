/** Statuses of runs and calls, each with a color, a shape and a word. */

import { named, sentence } from "./format.ts"
import { Icon, type IconName } from "./icons.tsx"

const shapes: { readonly [status: string]: IconName | undefined } = {
  queued: "circle-dashed",
  pending: "circle-dashed",
  running: "circle-dot",
  waiting: "hourglass",
  interrupted: "circle-pause",
  completed: "circle-check",
  ok: "circle-check",
  no_answer: "circle-help",
  failed: "circle-x",
  error: "circle-x",
  cancelled: "ban",
  denied: "ban"
}

export const StatusShape = ({ status }: { status: string }) => (
  <span class={`shape ${status}`} title={named(status)}>
    <Icon name={shapes[status] ?? "circle"} />
  </span>
)

/** A status as a pill: `children` is a better word for it, where there is one. */
export const StatusChip = ({ children, status }: { status: string; children?: string }) => (
  <span class={`chip status ${status}`}>
    <Icon name={shapes[status] ?? "circle"} />
    {children ?? sentence(named(status))}
  </span>
)
