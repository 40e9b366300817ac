/** The prompt of the turn at the revision as it was sent, and how it differs from the one before. */

import type { Message } from "../../Message.ts"
import type { RunState } from "../../RunState.ts"
import { counted } from "./format.ts"
import { Json } from "./jsonText.tsx"
import { useLatest } from "./latest.tsx"
import { run } from "./openRun.ts"
import { SourceList } from "./sourceList.tsx"

export const SentPrompt = ({ shown }: { shown: RunState }) => {
  const turn = shown.currentTurn?.turn ?? shown.turns.length
  const { journal } = run.value ?? {}
  const prepared = journal?.rows.filter(
    ({ event, revision }) => event?.type === "turn_prepared" && revision <= shown.revision
  )
  const [earlier, last] = prepared?.length === 1 ? [undefined, prepared[0]] : (prepared?.slice(-2) ?? [])
  const delta = last?.event?.type === "turn_prepared" ? last.event.prompt : undefined
  // The number of messages that the model saw before. If the beginning changes, the vendor does not read it from its
  // cache.
  const seen = earlier === undefined ? 0 : (journal?.stateAt(earlier.revision)?.prompt.length ?? 0)
  const kept = Math.min(seen, delta?.base ?? seen)
  const lost = seen - kept
  const { from, more, shown: messages } = useLatest(shown.prompt, 40)
  return (
    <section aria-label={`Prompt of turn ${turn}`}>
      <p class="quiet">
        turn {turn}: {counted(shown.prompt.length, "message")}, {kept} as in the turn before
        {lost > 0 && <b class="error"> {lost} changed: the cache is lost from there</b>}
        {delta?.system !== undefined && turn > 1 && <b class="error"> the instructions changed</b>}
      </p>
      {shown.system !== null && (
        <details>
          <summary>System</summary>
          <pre>{shown.system}</pre>
        </details>
      )}
      {more}
      {messages.map((message, index) => (
        <MessageBox key={from + index} message={message} isNew={from + index >= kept} />
      ))}
      {shown.currentTurn?.message !== undefined && <MessageBox message={shown.currentTurn.message} isNew />}
    </section>
  )
}

const MessageBox = ({ isNew, message }: { message: Message; isNew: boolean }) => (
  <article class={`message ${message.role} ${isNew ? "new" : ""}`}>
    <h2>
      {message.role} {isNew && <span class="badge">new</span>}
    </h2>
    {message.content.map((part, index) =>
      part.type === "text" ? (
        <pre key={index}>{part.text}</pre>
      ) : part.type === "thinking" ? (
        <details key={index}>
          <summary>Thinking</summary>
          <pre>{part.content}</pre>
        </details>
      ) : part.type === "source" ? null : (
        <Json key={index} value={part} />
      )
    )}
    <SourceList content={message.content} />
  </article>
)
