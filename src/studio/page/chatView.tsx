/** Talks to an agent. */

import { useSignal } from "@preact/signals"
import { useEffect } from "preact/hooks"
import { ChatExchange } from "./chatExchange.tsx"
import {
  closeConversation,
  conversationOf,
  exchanges,
  files,
  openConversation,
  send,
  streaming,
  thinking
} from "./chatStore.ts"
import { attempt, canChange, data, go, info, readRuns, runs } from "./pageStore.ts"

const newId = () => crypto.randomUUID().slice(0, 8)

export const ChatView = ({ agent, conversation }: { agent: string; conversation: string }) => {
  useEffect(() => {
    if (agent !== "" && conversation === "") go(chatAddress(agent, newId()))
    else if (conversation !== "") void attempt(() => openConversation(conversation))
    void attempt(readRuns)
    return closeConversation
  }, [agent, conversation])
  if (info.value.agents.length === 0) return <NoAgent />
  return (
    <div class="chat">
      <Conversations agent={agent} conversation={conversation} />
      <section aria-label="Chat">
        <div class="messages">
          {exchanges.value.map((exchange) => (
            <ChatExchange key={exchange.runId} exchange={exchange} />
          ))}
          {exchanges.value.length === 0 && <p class="empty">Ask {agent} something.</p>}
          <p class="said" role="status" aria-live="polite" aria-busy={streaming.value !== ""}>
            {streaming.value !== "" ? streaming.value : thinking.value && "…"}
          </p>
        </div>
        {canChange.value && <Composer agent={agent} conversation={conversation} />}
      </section>
    </div>
  )
}

const chatAddress = (agent: string, conversation: string) =>
  `#/chat/${encodeURIComponent(agent)}/${encodeURIComponent(conversation)}`

const NoAgent = () => (
  <div class="empty">
    <h2>No agent to talk to</h2>
    <p>
      <code>kernai studio --store runs.db --model ollama/llama3.1</code> offers one.
    </p>
  </div>
)

const Conversations = ({ agent, conversation }: { agent: string; conversation: string }) => (
  <aside aria-label="Conversations">
    <label>
      agent{" "}
      <select value={agent} onChange={(event) => go(chatAddress(event.currentTarget.value, newId()))}>
        {info.value.agents.map(({ name }) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
    <button onClick={() => go(chatAddress(agent, newId()))}>new conversation</button>
    <ul>
      {runs.value.map((line) => {
        const id = conversationOf(line.runId)
        if (id === undefined) return null
        return (
          <li key={id}>
            <a
              data-row
              href={chatAddress(line.agent, id)}
              {...(id === conversation ? { "aria-current": "page" as const } : {})}
            >
              {line.words.slice(0, 60) || id}
            </a>
          </li>
        )
      })}
    </ul>
  </aside>
)

const Composer = ({ agent, conversation }: { agent: string; conversation: string }) => {
  const text = useSignal("")
  const last = exchanges.value.at(-1)
  const isUnderWay = last !== undefined && (last.state.status.type === "running" || last.state.status.type === "paused")
  const submit = async (event: Event) => {
    event.preventDefault()
    if (text.value.trim() === "" || isUnderWay) return
    if (!(await attempt(() => send(agent, conversation, text.value)))) return
    text.value = ""
    // A chosen file is sent once.
    if (event.target instanceof Element) event.target.closest("form")?.reset()
  }
  return (
    <form class="composer" onSubmit={(event) => void submit(event)}>
      <textarea
        rows={2}
        aria-label="Message"
        placeholder="a message; Enter sends it"
        value={text.value}
        onInput={(event) => (text.value = event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && !event.shiftKey) void submit(event)
        }}
      />
      <p class="actions">
        <label class="upload">
          attach{" "}
          <input type="file" multiple onChange={(event) => (files.value = [...(event.currentTarget.files ?? [])])} />
        </label>
        {files.value.map((file) => (
          <span key={file.name} class="badge">
            {file.name}
          </span>
        ))}
        {isUnderWay ? (
          <button type="button" onClick={() => void attempt(() => data().cancel(last.runId))}>
            stop
          </button>
        ) : (
          <button class="primary">send</button>
        )}
      </p>
    </form>
  )
}
