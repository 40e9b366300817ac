/** A question, the turns of its run, and the answer. */

import type { CallResult } from "../../Call.ts"
import type { Message } from "../../Message.ts"
import type { Turn } from "../../RunState.ts"
import { ApprovalCard } from "./approvalCard.tsx"
import type { Exchange } from "./chatStore.ts"
import { excerpt, json } from "./format.ts"
import { Json } from "./jsonText.tsx"
import { data, runAddress } from "./pageStore.ts"

export const ChatExchange = ({ exchange: { runId, state } }: { exchange: Exchange }) => {
  const question = state.input.at(-1)
  const turns = state.currentTurn === undefined ? state.turns : [...state.turns, state.currentTurn]
  const asked = state.questions.filter(({ answer }) => answer === undefined)
  return (
    <article class="exchange">
      {question !== undefined && <Question message={question} runId={runId} />}
      {turns.map((turn) => (
        <TurnCards key={turn.turn} turn={turn} />
      ))}
      {asked.map((question) => (
        <ApprovalCard key={question.callId} rootRunId={runId} question={question} />
      ))}
      {state.status.type === "failed" && (
        <p class="error" role="alert">
          {state.status.error.message}
        </p>
      )}
      {state.status.type === "cancelled" && <p class="quiet">stopped</p>}
      <a class="quiet" href={runAddress(runId)}>
        open the run
      </a>
    </article>
  )
}

const Question = ({ message, runId }: { message: Message; runId: string }) => (
  <div class="bubble">
    {message.content.map((part, index) =>
      part.type === "text" ? (
        <span key={index}>{part.text}</span>
      ) : part.type === "image" && part.fileId !== undefined ? (
        <img key={index} src={data().mediaUrl(runId, part.fileId)} alt="attached" />
      ) : (
        <span key={index} class="badge">
          {part.type}
        </span>
      )
    )}
  </div>
)

const TurnCards = ({ turn }: { turn: Turn }) => {
  const thoughts = turn.message?.content.flatMap((part) => (part.type === "thinking" ? [part.content] : [])) ?? []
  const { outcome } = turn
  const text = outcome?.type === "final" || outcome?.type === "prose" ? outcome.text : undefined
  return (
    <>
      {thoughts.length > 0 && (
        <details>
          <summary>thinking</summary>
          <pre>{thoughts.join("\n")}</pre>
        </details>
      )}
      {turn.completed.map((result) => (
        <CallCard key={result.callId} result={result} />
      ))}
      {turn.inFlight.map(({ callId, name }) => (
        <p key={callId} class="card">
          ○ {name} runs
        </p>
      ))}
      {text !== undefined && <p class="answer">{text}</p>}
    </>
  )
}

const CallCard = ({ result: { error, input, kind, name, output = [] } }: { result: CallResult }) => {
  const texts = output.map((part) => (part.type === "text" ? part.text : json(part))).join("\n")
  return (
    <details class={error === undefined ? "card" : "card error"}>
      <summary>
        {error === undefined ? "●" : "✕"} {kind === "skill" ? "" : kind} <b>{name}</b>{" "}
        {excerpt(error?.message ?? texts, 60)}
      </summary>
      <Json value={input} />
      <pre>{error?.message ?? texts}</pre>
    </details>
  )
}
