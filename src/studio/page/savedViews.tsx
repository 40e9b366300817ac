/** Views of the list of runs, by name: a filter and an order, which the browser keeps. */

import { signal } from "@preact/signals"
import { Icon } from "./icons.tsx"
import { Menu } from "./menu.tsx"
import { listAddress } from "./runsStore.ts"

interface View {
  readonly name: string
  readonly address: string
}

const key = "kernai.views"

/** Reads the kept views, or none if another program wrote there. */
const kept = (): ReadonlyArray<View> => {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(key) ?? "[]")
    return Array.isArray(found) ? found.filter(isView) : []
  } catch {
    return []
  }
}

const isView = (value: unknown): value is View =>
  typeof value === "object" &&
  value !== null &&
  "name" in value &&
  typeof value.name === "string" &&
  "address" in value &&
  typeof value.address === "string" &&
  value.address.startsWith("#/")

const views = signal(kept())
const name = signal("")

const keep = (changed: ReadonlyArray<View>): void => {
  views.value = changed
  localStorage.setItem(key, JSON.stringify(changed))
}

const without = (gone: string) => views.value.filter((view) => view.name !== gone)

/** Keeps the list as it is shown, under the name that was typed. */
const save = (event: Event): void => {
  event.preventDefault()
  const chosen = name.value.trim()
  if (chosen === "") return
  keep([...without(chosen), { name: chosen, address: listAddress.value }])
  name.value = ""
}

export const ViewMenu = () => (
  <Menu icon="list-checks" label="Views">
    {views.value.map((view) => (
      <p key={view.name} class="view">
        <a href={view.address} {...(view.address === listAddress.value ? { "aria-current": "page" as const } : {})}>
          {view.name}
        </a>
        <button class="plain" aria-label={`Forget ${view.name}`} onClick={() => keep(without(view.name))}>
          <Icon name="x" />
        </button>
      </p>
    ))}
    <form class="view" onSubmit={save}>
      <input
        aria-label="Name of this view"
        placeholder="Name of this view"
        maxLength={80}
        value={name.value}
        onInput={(event) => (name.value = event.currentTarget.value)}
      />
      <button>Save</button>
    </form>
  </Menu>
)
