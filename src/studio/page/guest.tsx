/** Starts the page of end users: a chat, and nothing else. */

import { render } from "preact"
import type { Guest } from "../internal/guestPage.ts"
import { ChatView } from "./chatView.tsx"
import { anyAgent, guestSource } from "./guestSource.ts"
import { begin, guest, hash, place } from "./pageStore.ts"
import { markAllText } from "./seen.tsx"
import { Toasts } from "./toasts.tsx"

const App = () => {
  const { screen, sub } = place.value
  const conversation = screen === "chat" ? sub : ""
  return (
    <>
      <main class="guest">
        <ChatView key={conversation} agent={anyAgent} conversation={conversation} />
      </main>
      <Toasts />
    </>
  )
}

const start = async (): Promise<void> => {
  const app = document.getElementById("app")
  if (app === null) return
  markAllText()
  const settings: Guest = JSON.parse(document.documentElement.dataset["guest"] ?? "{}")
  guest.value = settings
  await begin(guestSource)
  hash.value = location.hash
  addEventListener("hashchange", () => {
    hash.value = location.hash
  })
  render(<App />, app)
}

void start()
