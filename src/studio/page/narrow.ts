/** Whether the window is as narrow as a phone, as style sheets see it, too. */

import { signal } from "@preact/signals"

const phone = matchMedia("(max-width: 520px)")

export const isNarrow = signal(phone.matches)
phone.addEventListener("change", ({ matches }) => (isNarrow.value = matches))
