/** Rows of equal height, of which only the visible ones are in the document. The focus stays on the list. */

import type { ComponentChildren } from "preact"
import { useSignal } from "@preact/signals"
import { useLayoutEffect, useRef } from "preact/hooks"

interface Props<A> {
  readonly label: string
  readonly rows: ReadonlyArray<A>
  /** The index of the selected row, or -1 for none. */
  readonly selected: number
  readonly onSelect: (row: A) => void
  readonly draw: (row: A) => ComponentChildren
  readonly level: (row: A) => number
  /** Folds or unfolds a row by the left and right arrow. */
  readonly onFold?: (row: A, isFolded: boolean) => void
}

const height = 32
const spare = 8

const stepOf = (key: string): number => (key === "ArrowDown" ? 1 : key === "ArrowUp" ? -1 : 0)

const move = <A,>({ onFold, onSelect, rows, selected }: Props<A>, event: KeyboardEvent): void => {
  const at = rows[selected]
  if (at !== undefined && (event.key === "ArrowLeft" || event.key === "ArrowRight")) {
    onFold?.(at, event.key === "ArrowLeft")
  }
  const by = stepOf(event.key)
  const row = rows[selected + by]
  if (by === 0 || row === undefined) return
  event.preventDefault()
  onSelect(row)
}

export const VirtualRows = <A,>(props: Props<A>) => {
  const { draw, label, level, onSelect, rows, selected } = props
  const list = useRef<HTMLDivElement>(null)
  const top = useSignal(0)
  const room = useSignal(600)
  useLayoutEffect(() => {
    const element = list.current
    if (element === null) return
    room.value = element.clientHeight
    const y = selected * height
    const isOut = y < element.scrollTop || y + height > element.scrollTop + element.clientHeight
    if (selected >= 0 && isOut) {
      element.scrollTop = Math.max(0, y - element.clientHeight / 2)
      top.value = element.scrollTop // drawn in the same frame, before the event of the scroll
    }
  }, [selected, rows.length])
  // A list that became shorter is drawn before the browser reports its new place.
  const from = Math.min(top.value, Math.max(0, rows.length * height - room.value))
  const first = Math.max(0, Math.floor(from / height) - spare)
  const shown = rows.slice(first, first + Math.ceil(room.value / height) + 2 * spare)
  const isShown = selected >= first && selected < first + shown.length
  return (
    <div
      ref={list}
      class="rows"
      role="treegrid"
      tabIndex={0}
      aria-label={label}
      aria-rowcount={rows.length}
      {...(isShown ? { "aria-activedescendant": `${label}-${selected}` } : {})}
      onKeyDown={(event) => move(props, event)}
      onScroll={(event) => {
        top.value = event.currentTarget.scrollTop
        room.value = event.currentTarget.clientHeight
      }}
    >
      <div class="space" role="presentation" style={{ height: `${rows.length * height}px` }}>
        <div role="presentation" style={{ transform: `translateY(${first * height}px)` }}>
          {shown.map((row, index) => (
            <div
              key={index}
              id={`${label}-${first + index}`}
              class="virtual"
              role="row"
              aria-rowindex={first + index + 1}
              aria-level={level(row)}
              aria-selected={first + index === selected}
              onClick={() => onSelect(row)}
            >
              <span role="gridcell">{draw(row)}</span>
            </div>
          ))}
        </div>
      </div>
    </div>
  )
}
