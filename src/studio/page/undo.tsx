/** The decisions that are not sent yet, of which the last is taken back first. */

import { made, takeBack } from "./decisions.ts"
import { counted } from "./format.ts"
import { Icon } from "./icons.tsx"

export const Undo = () => {
  const last = [...made.value.keys()].at(-1)
  if (last === undefined) return null
  return (
    <p class="undo actions" role="status">
      {counted(made.value.size, "decision")} {made.value.size === 1 ? "is" : "are"} sent in a moment
      <button data-key="u" onClick={() => takeBack(last)}>
        <Icon name="rotate-ccw" /> Undo the last
      </button>
    </p>
  )
}
