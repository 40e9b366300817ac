/** Starts the page. */

import { render } from "preact"
import { App } from "./app.tsx"
import * as FileSource from "./fileSource.ts"
import { onKey } from "./keys.ts"
import { begin, hash, notice } from "./pageStore.ts"
import { markAllText } from "./seen.tsx"
import { enter, server } from "./source.ts"

const start = async (): Promise<void> => {
  const app = document.getElementById("app")
  if (app === null) return
  markAllText()
  try {
    const exported = document.documentElement.dataset["run"]
    if (exported === undefined) await enter()
    else if (location.hash === "") history.replaceState(null, "", `#/runs/${exported}`)
    await begin(exported === undefined ? server : await FileSource.open())
  } catch (error) {
    notice.value = `${error instanceof Error ? error.message : error}. Open the address that 'kernai studio' printed.`
  }
  hash.value = location.hash
  addEventListener("hashchange", () => {
    hash.value = location.hash
  })
  addEventListener("keydown", onKey)
  render(<App />, app)
}

void start()
