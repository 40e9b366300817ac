/** The theme of the page: that of the system, or the person's choice, which the browser keeps. */

import { computed, effect, signal } from "@preact/signals"
import { inBrowser } from "./browserStorage.ts"

export const themes = ["system", "light", "dark"] as const
export type Theme = (typeof themes)[number]

const system = matchMedia("(prefers-color-scheme: dark)")
const isSystemDark = signal(system.matches)
system.addEventListener("change", () => (isSystemDark.value = system.matches))

const kept = inBrowser.get("kernai.theme")

export const theme = signal<Theme>(themes.find((name) => name === kept) ?? "system")
export const isDark = computed(() => (theme.value === "system" ? isSystemDark.value : theme.value === "dark"))

effect(() => {
  document.documentElement.dataset["theme"] = theme.value
})

export const setTheme = (to: Theme): void => {
  theme.value = to
  inBrowser.set("kernai.theme", to)
}
