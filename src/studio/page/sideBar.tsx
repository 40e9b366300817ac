/** The navigation between screens, and the theme. */

import { counted } from "./format.ts"
import { Icon, type IconName } from "./icons.tsx"
import { canChange, data, info, place, showKeys, type Place } from "./pageStore.ts"
import { listAddress } from "./runsStore.ts"
import { setTheme, theme, themes } from "./theme.ts"
import { waiting } from "./waitingStore.ts"

interface Item {
  readonly screens: ReadonlyArray<Place["screen"]>
  readonly name: string
  readonly icon: IconName
  readonly address: string
}

const items = (): ReadonlyArray<Item> => {
  const runs: Item = {
    screens: ["runs", "run", "compare", "play"],
    name: "Runs",
    icon: "list-tree",
    address: listAddress.value
  }
  if (data().isFile) return [runs]
  const first = encodeURIComponent(info.value.agents[0]?.name ?? "")
  const scenarios: Item = { screens: ["scenarios"], name: "Scenarios", icon: "list-checks", address: "#/scenarios" }
  const evaluate: Item = { screens: ["evaluate"], name: "Evaluate", icon: "grid-2x2-check", address: "#/evaluate" }
  return [
    { screens: ["overview"], name: "Overview", icon: "layout-dashboard", address: "#/overview" },
    runs,
    { screens: ["questions"], name: "Approvals", icon: "shield-check", address: "#/questions" },
    { screens: ["chat"], name: "Chat", icon: "message-square", address: `#/chat/${first}` },
    { screens: ["operate"], name: "Operate", icon: "wrench", address: "#/operate" },
    ...(info.value.evaluations ? [evaluate] : []),
    ...(info.value.scenarios ? [scenarios] : [])
  ]
}

export const SideBar = () => {
  const waits = waiting.value
  return (
    <header class="side">
      <div class="brand">
        <i />
        <span class="words">kernai</span>
      </div>
      <nav aria-label="Screens">
        {items().map(({ address, icon, name, screens }) => (
          <a
            key={name}
            href={address}
            title={name}
            {...(screens.includes(place.value.screen) ? { "aria-current": "page" as const } : {})}
          >
            <Icon name={icon} />
            <span class="words">{name}</span>
            {name === "Approvals" && waits > 0 && <span class="badge waiting">{waits}</span>}
          </a>
        ))}
      </nav>
      <div class="end">
        <span>{stateOfPage()}</span>
        <ThemeSwitch />
        <button class="plain" aria-label="Keys" title="Keys (?)" onClick={() => (showKeys.value = true)}>
          <Icon name="keyboard" />
        </button>
      </div>
    </header>
  )
}

const stateOfPage = (): string => {
  if (data().isFile) return "exported run"
  return `${counted(info.value.agents.length, "agent")}${canChange.value ? "" : ", read-only"}`
}

const icons = { system: "monitor", light: "sun", dark: "moon" } as const

/** The theme, and the button that takes the next one. */
const ThemeSwitch = () => {
  const next = themes[(themes.indexOf(theme.value) + 1) % themes.length] ?? "system"
  return (
    <button
      class="plain"
      aria-label={`Theme: ${theme.value}`}
      title={`Theme: ${theme.value}`}
      onClick={() => setTheme(next)}
    >
      <Icon name={icons[theme.value]} />
    </button>
  )
}
