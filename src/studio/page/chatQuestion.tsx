/** What a person asked, with its files, and a field to ask it otherwise. */

import { useSignal } from "@preact/signals"
import type { Message } from "../../Message.ts"
import { wordsOf } from "../internal/runTitle.ts"
import { Icon } from "./icons.tsx"
import { isMedia, Preview } from "./mediaTab.tsx"

interface Props {
  readonly message: Message
  readonly runId: string
  /** Absent while nothing can be asked. */
  readonly onEdit: ((text: string) => void) | undefined
}

export const ChatQuestion = ({ message, onEdit, runId }: Props) => {
  const isEdited = useSignal(false)
  if (isEdited.value && onEdit !== undefined) {
    return <EditForm text={wordsOf(message)} onEdit={onEdit} onEnd={() => (isEdited.value = false)} />
  }
  return (
    <div class="asked">
      <div class="bubble">
        {message.content.map((part, index) =>
          part.type === "text" ? (
            <span key={index}>{part.text}</span>
          ) : isMedia(part) && part.fileId !== undefined ? (
            <Preview key={index} id={part.fileId} part={part} runId={runId} />
          ) : (
            <span key={index} class="badge">
              {part.type}
            </span>
          )
        )}
      </div>
      {onEdit !== undefined && (
        <button class="plain" aria-label="Edit the question" onClick={() => (isEdited.value = true)}>
          <Icon name="pencil" />
        </button>
      )}
    </div>
  )
}

interface EditProps {
  readonly text: string
  readonly onEdit: (text: string) => void
  readonly onEnd: () => void
}

const EditForm = ({ onEdit, onEnd, text }: EditProps) => {
  const written = useSignal(text)
  const submit = (event: Event) => {
    event.preventDefault()
    if (written.value.trim() === "") return
    onEnd()
    onEdit(written.value)
  }
  return (
    <form class="composer" onSubmit={submit}>
      <textarea
        rows={3}
        aria-label="Edited question"
        value={written.value}
        ref={(field) => field?.focus()}
        onInput={(event) => (written.value = event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") onEnd()
        }}
      />
      <p class="actions">
        <button type="button" onClick={onEnd}>
          Cancel
        </button>
        <button class="primary">Ask this instead</button>
      </p>
    </form>
  )
}
