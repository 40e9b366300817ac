/** The conversation of the run as people read it, or the prompt of a turn as it was sent. */

import type { Message } from "../../Message.ts"
import type { RunState, Turn } from "../../RunState.ts"
import { CallCard, PendingCall } from "./callCard.tsx"
import { useLatest } from "./latest.tsx"
import { Markdown } from "./markdown.tsx"
import { isMedia, Preview } from "./mediaTab.tsx"
import { run, state } from "./openRun.ts"
import { place, setQuery } from "./pageStore.ts"
import { programOf } from "./programLines.ts"
import { ProgramView } from "./programView.tsx"
import { saidIn } from "../internal/saidIn.ts"
import { SentPrompt } from "./sentPrompt.tsx"
import { SourceList } from "./sourceList.tsx"

export const ConversationTab = () => {
  const shown = state.value
  if (shown === undefined) return null
  const isSent = place.value.query.get("view") === "sent"
  return (
    <>
      <div class="segments views" role="group" aria-label="View">
        <button aria-pressed={!isSent} onClick={() => setQuery("view", undefined)}>
          Messages
        </button>
        <button aria-pressed={isSent} onClick={() => setQuery("view", "sent")}>
          As sent
        </button>
      </div>
      {isSent ? <SentPrompt shown={shown} /> : <Messages shown={shown} />}
    </>
  )
}

const Messages = ({ shown }: { shown: RunState }) => {
  const program = programOf(shown)
  if (program === undefined) return <Spoken shown={shown} />
  const asked = shown.questions.flatMap(({ answer, callId }) => (answer === undefined ? [callId] : []))
  return <ProgramView program={program} runId={shown.rootRunId} waiting={new Set(asked)} />
}

const Spoken = ({ shown }: { shown: RunState }) => {
  const turns = shown.currentTurn === undefined ? shown.turns : [...shown.turns, shown.currentTurn]
  const { more, shown: last } = useLatest(turns, 30)
  return (
    <section class="conversation" aria-label="Messages">
      {shown.system !== null && (
        <details class="quiet">
          <summary>Instructions</summary>
          <Markdown text={shown.system} />
        </details>
      )}
      {shown.input.map((message, index) => (
        <Said
          key={index}
          who={message.role === "user" ? (shown.caller?.id ?? "user") : message.role}
          runId={shown.rootRunId}
          message={message}
        />
      ))}
      {more}
      {last.map((turn) => (
        <TurnMessages key={turn.turn} turn={turn} shown={shown} isNew={turn === turns.at(-1)} />
      ))}
    </section>
  )
}

interface TurnProps {
  readonly turn: Turn
  readonly shown: RunState
  readonly isNew: boolean
}

const TurnMessages = ({ isNew, shown, turn: { completed, inFlight, message, outcome, pending } }: TurnProps) => (
  <div class={isNew ? "turn new" : "turn"}>
    {message !== undefined && <Said who={shown.agent} runId={shown.rootRunId} message={message} />}
    {outcome?.type === "corrective" && <p class="error">{outcome.corrective}</p>}
    {completed.map((result) => (
      <CallCard
        key={result.callId}
        runId={shown.rootRunId}
        result={result}
        decision={run.value?.journal.decisions.get(result.callId)}
      />
    ))}
    {[...inFlight, ...pending].map((call) => (
      <PendingCall
        key={call.callId}
        call={call}
        status={
          shown.questions.some(({ answer, callId }) => callId === call.callId && answer === undefined)
            ? "waiting"
            : "running"
        }
      />
    ))}
  </div>
)

interface SaidProps {
  readonly who: string
  readonly runId: string
  readonly message: Message
}

/** What a message says, without its blocks of calls. */
const Said = ({ message, runId, who }: SaidProps) => {
  const text = message.role === "assistant" ? saidIn(message) : textIn(message)
  const thoughts = message.content.flatMap((part) => (part.type === "thinking" ? [part.content] : []))
  const media = message.content.filter(isMedia)
  if (text.trim() === "" && thoughts.length === 0 && media.length === 0) return null
  return (
    <article class={`said-by ${message.role}`}>
      <h2>{who}</h2>
      {thoughts.length > 0 && (
        <details class="quiet">
          <summary>Thinking</summary>
          <Markdown text={thoughts.join("\n\n")} />
        </details>
      )}
      {text.trim() !== "" && (
        <div class="sheet">
          <Markdown text={text.trim()} />
        </div>
      )}
      {media.map((part, index) =>
        part.fileId === undefined ? null : <Preview key={index} id={part.fileId} part={part} runId={runId} />
      )}
      <SourceList content={message.content} />
    </article>
  )
}

const textIn = ({ content }: Message): string =>
  content.map((part) => (part.type === "text" ? part.text : "")).join("\n")
