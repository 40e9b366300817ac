/** Moves the focus along the rows of a list. */

export const moveFocus = (by: number): void => {
  const rows = [...document.querySelectorAll<HTMLElement>("[data-row]")]
  const at = rows.findIndex((row) => row === document.activeElement)
  rows[Math.max(0, Math.min(at + by, rows.length - 1))]?.focus()
}
