/** The head of a conversation: its name, and what can be done with it as a whole. */

import { useSignal } from "@preact/signals"
import { wordsOf } from "../internal/runTitle.ts"
import { newChat } from "./chatBranches.ts"
import { nameOf, readHistory } from "./chatHistory.tsx"
import { exchanges } from "./chatStore.ts"
import { DialogBox } from "./dialogBox.tsx"
import { excerpt } from "./format.ts"
import { Icon, type IconName } from "./icons.tsx"
import { attempt, canChange, data, go, guest } from "./pageStore.ts"
import { say } from "./toasts.tsx"

interface Props {
  readonly agent: string
  readonly conversation: string
}

export const ChatHead = ({ agent, conversation }: Props) => {
  const open = useSignal<"rename" | "delete" | undefined>(undefined)
  const close = () => (open.value = undefined)
  const [first] = exchanges.value
  const name = nameOf(conversation) ?? excerpt(wordsOf(first?.state.input.at(-1)), 120)
  const last = exchanges.value.at(-1)
  return (
    <header>
      <button class="plain sheet" popovertarget="conversations" aria-label="Conversations and settings">
        <Icon name="menu" />
      </button>
      <h1>{name || (guest.value?.name ?? `Chat with ${agent}`)}</h1>
      {guest.value === undefined && last !== undefined && (
        <a
          class="button plain"
          aria-label="Share"
          title="A file that shows the conversation"
          href={data().exportUrl(last.runId)}
          download
        >
          <Icon name="download" /> <span>Share</span>
        </a>
      )}
      {canChange.value && first !== undefined && (
        <>
          <Act icon="pencil" name="Rename" onClick={() => (open.value = "rename")} />
          <Act icon="trash-2" name="Delete" onClick={() => (open.value = "delete")} />
        </>
      )}
      {open.value === "rename" && <RenameSheet conversation={conversation} name={name} onClose={close} />}
      {open.value === "delete" && <DeleteSheet agent={agent} conversation={conversation} name={name} onClose={close} />}
    </header>
  )
}

const Act = ({ icon, name, onClick }: { icon: IconName; name: string; onClick: () => void }) => (
  <button class="plain" aria-label={name} onClick={onClick}>
    <Icon name={icon} /> <span>{name}</span>
  </button>
)

interface SheetProps {
  readonly conversation: string
  readonly name: string
  readonly onClose: () => void
}

const RenameSheet = ({ conversation, name, onClose }: SheetProps) => {
  const written = useSignal(name)
  const submit = async (event: Event) => {
    event.preventDefault()
    if (!(await attempt(() => data().rename(conversation, written.value)))) return
    onClose()
    await attempt(readHistory)
  }
  return (
    <DialogBox label="Rename the conversation" onClose={onClose}>
      <form onSubmit={submit}>
        <h2>Rename the conversation</h2>
        <label class="field">
          Name
          <input
            autoFocus
            maxLength={200}
            value={written.value}
            onInput={({ currentTarget }) => (written.value = currentTarget.value)}
          />
        </label>
        <p class="actions">
          <button class="primary">Rename</button>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
        </p>
      </form>
    </DialogBox>
  )
}

const DeleteSheet = ({ agent, conversation, name, onClose }: SheetProps & { readonly agent: string }) => {
  const remove = async () => {
    if (!(await attempt(() => data().remove(conversation)))) return
    onClose()
    say("Deleted")
    go(newChat(agent))
  }
  return (
    <DialogBox label="Delete the conversation" onClose={onClose}>
      <h2>Delete the conversation?</h2>
      <p>{name} will be gone with its runs, answers and files. This cannot be taken back.</p>
      <p class="actions">
        <button class="primary" onClick={remove}>
          Delete
        </button>
        <button autoFocus onClick={onClose}>
          Cancel
        </button>
      </p>
    </DialogBox>
  )
}
