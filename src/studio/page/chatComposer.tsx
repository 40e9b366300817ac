/** The field for the next message: its draft, its files, and messages that wait until the run has ended. */

import { useSignal } from "@preact/signals"
import { useEffect, useRef } from "preact/hooks"
import { inBrowser } from "./browserStorage.ts"
import { readHistory } from "./chatHistory.tsx"
import { VoiceButton } from "./chatVoice.tsx"
import { type Exchange, exchanges, isUnderWay, send } from "./chatStore.ts"
import { Icon } from "./icons.tsx"
import { attempt, data, guest } from "./pageStore.ts"

interface Props {
  readonly agent: string
  readonly conversation: string
}

interface Written {
  readonly text: string
  readonly files: ReadonlyArray<File>
}

/** Keeps a text for a conversation in this browser. */
const useDraft = (conversation: string) => {
  const key = `kernai.draft.${conversation}`
  const text = useSignal(inBrowser.get(key) ?? "")
  const write = (value: string) => {
    text.value = value
    inBrowser.set(key, value === "" ? undefined : value)
  }
  return [text, write] as const
}

export const Composer = ({ agent, conversation }: Props) => {
  const [text, write] = useDraft(conversation)
  const files = useSignal<ReadonlyArray<File>>([])
  const queue = useSignal<ReadonlyArray<Written>>([])
  const last = exchanges.value.at(-1)
  const isWaiting = isUnderWay(last)
  const deliver = async (written: Written) => {
    const isSent = await attempt(() => send(agent, conversation, written.text, written.files))
    if (!isSent) giveBack([written])
    // The first message adds the conversation to the list.
    else if (exchanges.value.length === 1) void attempt(readHistory)
  }
  const giveBack = (all: ReadonlyArray<Written>) => {
    write([...all.map((one) => one.text), text.value].filter((one) => one !== "").join("\n\n"))
    files.value = [...all.flatMap((one) => one.files), ...files.value]
  }
  useEffect(() => {
    if (isWaiting || queue.value.length === 0) return
    const [next, ...others] = queue.value
    if (next !== undefined && last?.state.status.type === "completed") {
      queue.value = others
      void deliver(next)
    } else {
      // A run that was stopped or failed may make the waiting messages wrong: the person decides.
      giveBack(queue.value)
      queue.value = []
    }
  }, [isWaiting, last?.runId])
  useEffect(() => () => giveBack(queue.peek()), [])
  const submit = (event: Event) => {
    event.preventDefault()
    if (text.value.trim() === "") return
    const written = { text: text.value, files: files.value }
    write("")
    files.value = []
    if (isWaiting) queue.value = [...queue.value, written]
    else void deliver(written)
  }
  const add = (given: FileList | undefined) => (files.value = [...files.value, ...(given ?? [])])
  return (
    <form
      class="composer"
      onSubmit={submit}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault()
        add(event.dataTransfer?.files)
      }}
    >
      <Chips
        label="Waiting to be sent"
        names={queue.value.map((one) => one.text)}
        onRemove={(index) => (queue.value = queue.value.toSpliced(index, 1))}
      />
      <textarea
        rows={2}
        aria-label="Message"
        placeholder={guest.value === undefined ? "Write to the agent, or drop files here" : "Write a message"}
        value={text.value}
        onInput={(event) => write(event.currentTarget.value)}
        onPaste={(event) => {
          const pasted = event.clipboardData?.files
          if (pasted === undefined || pasted.length === 0) return
          event.preventDefault()
          add(pasted)
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event)
        }}
      />
      <Chips
        label="Files"
        names={files.value.map(({ name }) => name)}
        onRemove={(index) => (files.value = files.value.toSpliced(index, 1))}
      />
      <p class="actions">
        <FileButton onFiles={add} />
        <VoiceButton onText={(said) => write([text.value, said].filter((one) => one !== "").join(" "))} />
        <i />
        <Buttons last={last} isQueued={text.value.trim() !== ""} />
      </p>
    </form>
  )
}

const Buttons = ({ isQueued, last }: { last: Exchange | undefined; isQueued: boolean }) => {
  if (last === undefined || !isUnderWay(last)) return <button class="primary">Send</button>
  return (
    <>
      <button type="button" data-key="s" onClick={() => void attempt(() => data().cancel(last.runId))}>
        <Icon name="square" /> Stop
      </button>
      {isQueued && <button class="primary">Queue</button>}
    </>
  )
}

interface ChipsProps {
  readonly label: string
  readonly names: ReadonlyArray<string>
  readonly onRemove: (index: number) => void
}

const Chips = ({ label, names, onRemove }: ChipsProps) =>
  names.length === 0 ? null : (
    <ul class="chips" aria-label={label}>
      {names.map((name, index) => (
        <li key={index} class="badge">
          <span>{name}</span>
          <button
            type="button"
            class="plain"
            aria-label={`Remove ${name.slice(0, 40)}`}
            onClick={() => onRemove(index)}
          >
            <Icon name="x" />
          </button>
        </li>
      ))}
    </ul>
  )

const FileButton = ({ onFiles }: { onFiles: (files: FileList | undefined) => void }) => {
  const input = useRef<HTMLInputElement>(null)
  return (
    <>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        onChange={({ currentTarget }) => {
          onFiles(currentTarget.files ?? undefined)
          // The same file can be chosen again.
          currentTarget.value = ""
        }}
      />
      <button type="button" class="plain" onClick={() => input.current?.click()}>
        <Icon name="paperclip" /> Attach
      </button>
    </>
  )
}
