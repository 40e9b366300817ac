/** Talks to an agent. */

import { useEffect, useRef } from "preact/hooks"
import { ChatHead } from "./chatHead.tsx"
import { ChatHistory } from "./chatHistory.tsx"
import { readScores } from "./chatScores.tsx"
import { Composer } from "./chatComposer.tsx"
import { ChatExchange } from "./chatExchange.tsx"
import { newChat, readChoices } from "./chatBranches.ts"
import {
  askInstead,
  closeConversation,
  exchanges,
  isReconnecting,
  isUnderWay,
  openConversation,
  send
} from "./chatStore.ts"
import { excerpt, sentence } from "./format.ts"
import { Icon } from "./icons.tsx"
import { attempt, canChange, go, guest, info, place } from "./pageStore.ts"

export const ChatView = ({ agent, conversation }: { agent: string; conversation: string }) => {
  const line = place.value.query.get("line") ?? ""
  useEffect(() => {
    if (agent !== "" && conversation === "") go(newChat(agent))
    else if (conversation !== "") void attempt(() => openConversation(conversation, readChoices(line)))
    if (info.value.evaluations) void attempt(readScores)
    return closeConversation
  }, [agent, conversation, line])
  if (info.value.agents.length === 0) return <NoAgent />
  return (
    <div class="chat">
      <aside id="conversations" popover="auto" aria-label="Conversations">
        {guest.value === undefined ? <Settings agent={agent} /> : <p class="brand">{guest.value.name}</p>}
        <button data-key="n" onClick={() => go(newChat(agent))}>
          New conversation
        </button>
        <ChatHistory conversation={conversation} />
      </aside>
      <section aria-label="Chat">
        <ChatHead agent={agent} conversation={conversation} />
        <Messages agent={agent} conversation={conversation} />
        {canChange.value && <Composer agent={agent} conversation={conversation} />}
        {guest.value?.consent !== undefined && <p class="consent">{guest.value.consent}</p>}
      </section>
    </div>
  )
}

/** The messages. The last line stays in view unless the reader has scrolled up. */
const Messages = ({ agent, conversation }: { agent: string; conversation: string }) => {
  const list = useRef<HTMLDivElement>(null)
  const isAtEnd = useRef(true)
  const count = exchanges.value.length
  useEffect(() => {
    const content = list.current?.firstElementChild
    if (content === undefined || content === null) return
    const watcher = new ResizeObserver(() => {
      const element = list.current
      if (element !== null && isAtEnd.current) element.scrollTop = element.scrollHeight
    })
    watcher.observe(content)
    return () => watcher.disconnect()
  }, [])
  const canAsk = canChange.value && !isUnderWay(exchanges.value.at(-1))
  const onMessage = (text: string) => void attempt(() => send(agent, conversation, text, []))
  return (
    <div
      class="messages"
      ref={list}
      onScroll={({ currentTarget: { clientHeight, scrollHeight, scrollTop } }) => {
        isAtEnd.current = scrollHeight - scrollTop - clientHeight < 40
      }}
    >
      <div>
        {exchanges.value.map((exchange) => (
          <ChatExchange
            key={exchange.runId}
            exchange={exchange}
            onMessage={onMessage}
            onInstead={
              canAsk ? (text) => void attempt(() => askInstead(agent, conversation, text, exchange)) : undefined
            }
          />
        ))}
        <Reconnecting />
        {count === 0 && <Beginning agent={agent} onAsk={onMessage} />}
      </div>
    </div>
  )
}

const Beginning = ({ agent, onAsk }: { agent: string; onAsk: (text: string) => void }) => {
  const line = info.value.agents.find(({ name }) => name === agent)
  const starters = guest.value?.starters ?? line?.starters ?? []
  return (
    <div class="empty">
      <h2>{guest.value === undefined ? sentence(baseOf(agent)) : "How can I help?"}</h2>
      {line?.description !== undefined && <p>{excerpt(line.description, 240)}</p>}
      <p class="starters">
        {starters.map((text) => (
          <button key={text} onClick={() => onAsk(text)}>
            {text}
          </button>
        ))}
      </p>
    </div>
  )
}

const Reconnecting = () =>
  isReconnecting.value && isUnderWay(exchanges.value.at(-1)) ? (
    <p class="quiet" role="status">
      <Icon name="radio" /> reconnecting …
    </p>
  ) : null

const NoAgent = () => (
  <div class="empty">
    <h2>No agent to talk to</h2>
    <p>
      <code>kernai studio --create --store runs.db --model ollama/llama3.1</code> offers one.
    </p>
  </div>
)

/** Returns the name of the agent without its settings: `clerk` of `clerk@gpt-4o+tools`. */
const baseOf = (name: string): string => name.split("@")[0] ?? name

/** The agent to talk to, with its model and its dialect if it is served with several. */
const Settings = ({ agent }: { agent: string }) => {
  const { agents } = info.value
  const chosen = agents.find(({ name }) => name === agent) ?? agents[0]
  if (chosen === undefined) return null
  const family = agents.filter(({ name }) => baseOf(name) === baseOf(chosen.name))
  const pick = (model: string, dialect: string) => {
    const found =
      family.find((one) => one.model === model && one.dialect === dialect) ?? family.find((one) => one.model === model)
    if (found !== undefined) go(newChat(found.name))
  }
  const choice = (label: string, value: string, values: ReadonlyArray<string>, choose: (value: string) => void) =>
    new Set(values).size < 2 ? null : (
      <label class="field">
        {label}
        <select value={value} onChange={(event) => choose(event.currentTarget.value)}>
          {[...new Set(values)].map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      </label>
    )
  const names = agents.map(({ name }) => baseOf(name))
  const models = family.map(({ model }) => model)
  const dialects = family.filter(({ model }) => model === chosen.model).map(({ dialect }) => dialect)
  return (
    <>
      {choice("Agent", baseOf(chosen.name), names, (name) => go(newChat(name)))}
      {choice("Model", chosen.model, models, (model) => pick(model, chosen.dialect))}
      {choice("Dialect", chosen.dialect, dialects, (dialect) => pick(chosen.model, dialect))}
    </>
  )
}
