/** A button with choices below it, which close when a person presses elsewhere or Escape. */

import type { ComponentChildren } from "preact"
import { useEffect, useRef } from "preact/hooks"
import { Icon, type IconName } from "./icons.tsx"

interface Props {
  readonly icon: IconName
  readonly label: string
  readonly children: ComponentChildren
}

export const Menu = ({ children, icon, label }: Props) => {
  const ref = useRef<HTMLDetailsElement>(null)
  useEffect(() => {
    const close = (event: Event) => {
      const { current } = ref
      const isInside = event.target instanceof Node && current?.contains(event.target) === true
      if (current !== null && (event instanceof KeyboardEvent ? event.key === "Escape" : !isInside))
        current.open = false
    }
    addEventListener("pointerdown", close)
    addEventListener("keydown", close)
    return () => {
      removeEventListener("pointerdown", close)
      removeEventListener("keydown", close)
    }
  }, [])
  return (
    <details class="menu" ref={ref}>
      <summary class="button">
        <Icon name={icon} /> {label}
      </summary>
      <div role="group" aria-label={label}>
        {children}
      </div>
    </details>
  )
}
