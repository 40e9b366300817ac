/** A question, the turns of its run with the runs below it, and the answer. */

import type { CallResult } from "../../Call.ts"
import type { Content } from "../../Content.ts"
import { childRunId } from "../../Call.ts"
import type { ChatRun, ChatTurn } from "../internal/guestRun.ts"
import type { RunStatus } from "../../RunStore.ts"
import { statusOf } from "../../store-kit/StoreRules.ts"
import { wordsOf } from "../internal/runTitle.ts"
import { ChatFoot } from "./chatFoot.tsx"
import { ChatQuestion } from "./chatQuestion.tsx"
import { QuestionCard } from "./questionCard.tsx"
import { type Exchange, turnsOf } from "./chatStore.ts"
import { type Spoken, spokenIn } from "./chatStream.ts"
import { excerpt, json, named } from "./format.ts"
import { Json } from "./jsonText.tsx"
import { Markdown } from "./markdown.tsx"
import { isMedia, MediaParts } from "./mediaTab.tsx"
import { guest, runAddress } from "./pageStore.ts"
import { saidIn } from "../internal/saidIn.ts"
import { SourceList } from "./sourceList.tsx"
import { StatusShape } from "./status.tsx"
import { UiFrame } from "./uiFrame.tsx"

type Send = (text: string) => void

/**
 * The context of the cards of an exchange: the run that receives answers, the runs below it, and the function that
 * sends a page's message.
 */
interface Scope {
  readonly rootRunId: string
  readonly below: Exchange["below"]
  readonly onMessage: Send
}

interface ExchangeProps {
  readonly exchange: Exchange
  readonly onMessage: Send
  /** Asks a text instead of the question. Absent while nothing can be asked. */
  readonly onInstead: Send | undefined
}

export const ChatExchange = ({ exchange, onInstead, onMessage }: ExchangeProps) => {
  const { below, runId, state } = exchange
  const question = state.input.at(-1)
  return (
    <article class="exchange">
      {question !== undefined && <ChatQuestion message={question} runId={runId} onEdit={onInstead} />}
      <RunBody state={state} scope={{ rootRunId: runId, below, onMessage }} />
      {spokenIn(state).map((spoken) => (
        <Streaming key={spoken.turn} spoken={spoken} isRunning={state.status.type === "running"} />
      ))}
      {guest.value !== undefined && isBusy(state) && <p class="quiet">working …</p>}
      {state.status.type === "cancelled" && <p class="quiet">stopped</p>}
      <ChatFoot exchange={exchange} onAgain={onInstead && (() => onInstead(wordsOf(question)))} />
    </article>
  )
}

/** Whether a run works on something that an end user does not see. */
const isBusy = (state: ChatRun): boolean => state.status.type === "running" && spokenIn(state).length === 0

const RunBody = ({ scope, state }: { state: ChatRun; scope: Scope }) => (
  <>
    {turnsOf(state).map((turn) => (
      <TurnCards key={turn.turn} turn={turn} scope={scope} />
    ))}
    {state.questions
      .filter(({ answer, asking }) => answer === undefined && asking?.isTimer !== true)
      .map((question) => (
        <QuestionCard
          key={question.callId}
          rootRunId={scope.rootRunId}
          question={question}
          asked={wordsOf(state.input.at(-1))}
        />
      ))}
    <Failure status={statusOf(state.status)} />
  </>
)

const TurnCards = ({ scope, turn }: { turn: ChatTurn; scope: Scope }) => {
  const thoughts = turn.message?.content.flatMap((part) => (part.type === "thinking" ? [part.content] : [])) ?? []
  const text = turn.message === undefined ? undefined : saidIn(turn.message)
  const isAnswer = turn.outcome?.type === "final" || turn.outcome?.type === "prose"
  return (
    <>
      <Thinking text={thoughts.join("\n\n")} />
      {!isAnswer && <Answer text={text} />}
      {turn.completed.map((result) => (
        <CallCard key={result.callId} result={result} turn={turn} scope={scope} />
      ))}
      {turn.inFlight.map((call) => {
        const child = scope.below.get(childRunId(turn.turnId, call) ?? "")
        return child === undefined ? (
          <p key={call.callId} class="card">
            <StatusShape status="running" /> {call.name} runs
          </p>
        ) : (
          <ChildRun key={call.callId} child={child} scope={scope} />
        )
      })}
      {isAnswer && <Answer text={text} />}
      <MediaParts parts={turn.message?.content ?? []} runId={scope.rootRunId} />
      <SourceList content={turn.message?.content ?? []} />
    </>
  )
}

const Failure = ({ status }: { status: RunStatus }) =>
  "error" in status ? (
    <p class="error" role="alert">
      {guest.value === undefined && status.type === "no_answer" ? `no answer: ${status.reason}` : status.error.message}
    </p>
  ) : null

const Answer = ({ text }: { text: string | undefined }) =>
  text === undefined || text.trim() === "" ? null : (
    <div class="answer">
      <Markdown text={text.trim()} />
    </div>
  )

const Thinking = ({ text }: { text: string }) =>
  text === "" ? null : (
    <details class="quiet">
      <summary>Thinking</summary>
      <Markdown text={text} />
    </details>
  )

/** A reply that its journal does not have: it streams, or it was stopped. */
const Streaming = ({ isRunning, spoken: { text, thinking } }: { spoken: Spoken; isRunning: boolean }) => (
  <>
    <Thinking text={thinking} />
    <div role="status" aria-live="polite" aria-busy={isRunning}>
      {text.trim() === "" && isRunning ? <p class="quiet">…</p> : <Answer text={text} />}
    </div>
  </>
)

/** A run below, folded once it has ended. */
const ChildRun = ({ child, scope }: { child: ChatRun; scope: Scope }) => {
  const status = statusOf(child.status).type
  return (
    <details class={`card below ${status}`} open={status !== "completed"}>
      <summary>
        <StatusShape status={status} /> <b>{child.agent}</b> {named(status)}{" "}
        <a class="quiet" href={runAddress(child.runId)}>
          Open the run
        </a>
      </summary>
      <RunBody state={child} scope={scope} />
    </details>
  )
}

interface CallProps {
  readonly result: CallResult
  readonly turn: ChatTurn
  readonly scope: Scope
}

const CallCard = ({ result, scope, turn }: CallProps) => {
  const { error, input, kind, name, output = [] } = result
  const child = scope.below.get(childRunId(turn.turnId, result) ?? "")
  if (child !== undefined) return <ChildRun child={child} scope={scope} />
  const texts = output
    .filter((part) => !isMedia(part))
    .map(textOf)
    .join("\n")
  if (guest.value !== undefined) return <MediaParts parts={output} runId={scope.rootRunId} />
  return (
    <>
      <details class={error === undefined ? "card" : "card error"}>
        <summary>
          <StatusShape status={error === undefined ? "ok" : "error"} /> {kind === "skill" ? "" : kind} <b>{name}</b>{" "}
          {excerpt(error?.message ?? texts, 60)}
        </summary>
        <Json value={input} />
        <pre>{error?.message ?? texts}</pre>
      </details>
      <MediaParts parts={output} runId={scope.rootRunId} />
      {output.map((part, index) => (
        <Page key={index} part={part} onMessage={scope.onMessage} />
      ))}
    </>
  )
}

const textOf = (part: Content): string =>
  part.type === "text" ? part.text : part.type === "ui_resource" ? `the page ${part.uri}` : json(part)

/** The page of a result. A page names the server that made it. */
const Page = ({ onMessage, part }: { part: Content; onMessage: Send }) => {
  if (part.type !== "ui_resource" || !("server" in part) || typeof part.server !== "string") return null
  return <UiFrame server={part.server} uri={part.uri} structured={part.structuredContent} onMessage={onMessage} />
}
