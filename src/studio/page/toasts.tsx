/** Results of actions, and problems. A problem stays until it is dismissed. */

import { signal } from "@preact/signals"
import { Icon } from "./icons.tsx"
import { notice } from "./pageStore.ts"

interface Toast {
  readonly id: number
  readonly text: string
}

const toasts = signal<ReadonlyArray<Toast>>([])
let count = 0

/** Shows the result of an action for some seconds. */
export const say = (text: string): void => {
  const id = ++count
  toasts.value = [...toasts.value.slice(-3), { id, text }]
  setTimeout(() => (toasts.value = toasts.value.filter((one) => one.id !== id)), 5_000)
}

export const Toasts = () => (
  <div class="toasts">
    <div role="status">
      {toasts.value.map(({ id, text }) => (
        <p key={id} class="toast">
          <Icon name="check" /> {text}
        </p>
      ))}
    </div>
    {notice.value !== "" && (
      <p class="toast error" role="alert">
        <Icon name="triangle-alert" /> {notice.value}
        <button aria-label="Dismiss" class="plain" onClick={() => (notice.value = "")}>
          <Icon name="x" />
        </button>
      </p>
    )}
  </div>
)
