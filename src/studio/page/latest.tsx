/** The end of a long list, and a button for what is before it: a run can have thousands of turns. */

import { useSignal } from "@preact/signals"
import type { ComponentChildren } from "preact"

/** Returns the last items, the index of the first of them, and the button that shows more. */
export const useLatest = <A,>(
  items: ReadonlyArray<A>,
  most: number
): { readonly shown: ReadonlyArray<A>; readonly from: number; readonly more: ComponentChildren } => {
  const count = useSignal(most)
  const from = Math.max(0, items.length - count.value)
  const more =
    from === 0 ? null : (
      <button class="more" onClick={() => (count.value += most)}>
        {from} before these: show {Math.min(from, most)}
      </button>
    )
  return { shown: items.slice(from), from, more }
}
