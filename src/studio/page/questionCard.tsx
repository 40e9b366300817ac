/** A call that waits for a person: approve, deny with a reason, or change its input first. */

import { useSignal } from "@preact/signals"
import { twins } from "../../kit/seenText.ts"
import type { OpenQuestion } from "../../RunState.ts"
import { type Asked, askedBy } from "./askedValue.ts"
import { decide, made, sent, takeBack, wordOf } from "./decisions.ts"
import { Fields } from "./fields.tsx"
import { ago, counted, json, sentence } from "./format.ts"
import { Icon } from "./icons.tsx"
import { canChange, guest, info } from "./pageStore.ts"
import { differences, isFields, SchemaForm } from "./schemaForm.tsx"
import { marksIn, SeenJson } from "./seen.tsx"
import type { Decision } from "./source.ts"
import { StatusShape } from "./status.tsx"

interface Props {
  readonly rootRunId: string
  readonly question: Pick<OpenQuestion, "callId" | "name" | "input" | "reason" | "asking">
  readonly since?: number
  /** What the user asked, whose words are compared with those of the input. */
  readonly asked?: string
}

export const QuestionCard = ({ asked = "", question, rootRunId, since }: Props) => {
  const { asking, callId, input, name, reason } = question
  const wanted = askedBy(asking)
  const edit = useSignal<unknown>(undefined)
  const choose = (decision: Decision) => decide(rootRunId, decision)
  const chosen = made.value.get(callId)?.decision
  const result = sent.value.get(callId)
  const changes = isFields(input) && isFields(edit.value) ? differences(input, edit.value) : []
  return (
    <div class="card waiting" role="group" aria-label={`${name} waits for you`}>
      <p>
        <StatusShape status="waiting" />{" "}
        {guest.value === undefined ? (
          <>
            <b>{name}</b> waits for you: {reason}{" "}
          </>
        ) : (
          <>
            Please confirm: <b>{sentence(name)}</b>
          </>
        )}
        {since !== undefined && <span class="quiet">({ago(since)})</span>}
      </p>
      <Input value={input} asked={asked} />
      {isFields(edit.value) && (
        <SchemaForm
          schema={info.value.inputs[name]}
          value={edit.value}
          onChange={(changed) => (edit.value = changed)}
        />
      )}
      {changes.length > 0 && <pre class="changes">{changes.join("\n")}</pre>}
      {result !== undefined && <p role="status">{result}</p>}
      {chosen !== undefined && <Chosen decision={chosen} />}
      {result === undefined && chosen === undefined && canChange.value && (
        <>
          {wanted !== undefined && <AskedForm asked={wanted} onGive={(given) => choose({ callId, ...given })} />}
          <Decisions
            isEdited={edit.value !== undefined}
            canApprove={wanted === undefined}
            canEdit={asking === undefined && isFields(input)}
            onApprove={() =>
              choose({ callId, approved: true, ...(edit.value === undefined ? {} : { input: edit.value }) })
            }
            onEdit={() => (edit.value = edit.value === undefined ? input : undefined)}
            onDeny={(reason) => choose({ callId, approved: false, ...(reason === "" ? {} : { reason }) })}
          />
        </>
      )}
    </div>
  )
}

/** A decision that is not sent yet. */
const Chosen = ({ decision }: { decision: Decision }) => (
  <p class="actions" role="status">
    {sentence(wordOf(decision))}, sent in a moment
    <button data-key="u" onClick={() => takeBack(decision.callId)}>
      <Icon name="rotate-ccw" /> Undo
    </button>
  </p>
)

/** The form of a running call, or the result of one that somebody else runs. */
const AskedForm = ({ asked, onGive }: { asked: Asked; onGive: (given: ReturnType<Asked["give"]>) => void }) => {
  const given = useSignal(asked.start)
  return (
    <>
      <SchemaForm
        legend="Your answer"
        schema={asked.schema}
        value={given.value}
        onChange={(changed) => (given.value = changed)}
      />
      <p class="actions">
        <button class="primary" data-key="a" onClick={() => onGive(asked.give(given.value))}>
          Send
        </button>
      </p>
    </>
  )
}

/** The whole input of a call, with its length and a warning about characters and spellings that deceive the eye. */
const Input = ({ asked, value }: { value: unknown; asked: string }) => {
  const text = json(value)
  const marks = marksIn(text)
  return (
    <>
      {isFields(value) ? (
        <Fields values={value} />
      ) : (
        <pre>
          <SeenJson text={text} />
        </pre>
      )}
      {guest.value === undefined && <p class="quiet">{counted(text.length, "character")}</p>}
      {marks > 0 && (
        <p class="error" role="alert">
          This input contains invisible characters, or letters that look like others. They are marked above, in{" "}
          {counted(marks, "place")}.
        </p>
      )}
      {twins([asked, text]).map((words) => (
        <p key={words.join()} class="error" role="alert">
          Look alike, but differ:{" "}
          {words.map((word) => (
            <code key={word} class="twin">
              {word}
            </code>
          ))}
        </p>
      ))}
    </>
  )
}

interface DecisionsProps {
  readonly isEdited: boolean
  readonly canApprove: boolean
  readonly canEdit: boolean
  readonly onApprove: () => void
  readonly onEdit: () => void
  readonly onDeny: (reason: string) => void
}

const Decisions = (props: DecisionsProps) => {
  const { canApprove, canEdit, isEdited, onApprove, onDeny, onEdit } = props
  if (guest.value !== undefined) return <GuestDecisions {...props} />
  const why = useSignal("")
  return (
    <p class="actions">
      {canApprove && (
        <button class="primary" data-key="a" onClick={onApprove}>
          {isEdited ? "Approve the changed input" : "Approve"}
        </button>
      )}
      {canEdit && (
        <button data-key="x" onClick={onEdit}>
          {isEdited ? "Keep the input" : "Edit"}
        </button>
      )}
      <button data-key="d" onClick={() => onDeny(why.value)}>
        Deny
      </button>
      <input
        aria-label="Reason for denying"
        placeholder="Reason for denying"
        value={why.value}
        onInput={(event) => (why.value = event.currentTarget.value)}
      />
    </p>
  )
}

const GuestDecisions = ({ canApprove, onApprove, onDeny }: DecisionsProps) => (
  <p class="actions">
    {canApprove && (
      <button class="primary" onClick={onApprove}>
        Confirm
      </button>
    )}
    <button onClick={() => onDeny("")}>Not now</button>
  </p>
)
