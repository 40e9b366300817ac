/** A modal dialog: the browser keeps the focus in it, and closes it by Escape. */

import type { ComponentChildren } from "preact"
import { useEffect, useRef } from "preact/hooks"

interface Props {
  readonly label: string
  readonly onClose: () => void
  readonly children: ComponentChildren
}

export const DialogBox = ({ children, label, onClose }: Props) => {
  const ref = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const before = document.activeElement
    ref.current?.showModal()
    return () => {
      if (before instanceof HTMLElement) before.focus()
    }
  }, [])
  return (
    <dialog
      ref={ref}
      aria-label={label}
      onClose={onClose}
      onClick={({ currentTarget, target }) => {
        if (target === currentTarget) onClose()
      }}
    >
      {children}
    </dialog>
  )
}
