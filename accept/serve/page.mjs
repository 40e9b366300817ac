/**
 * A small chat as a React page would have it: `useChat` as it comes, with approvals, stop and resume.
 */
import { useChat } from "@ai-sdk/react"
import { DefaultChatTransport, isToolUIPart, lastAssistantMessageIsCompleteWithApprovalResponses } from "ai"
import { createElement as h } from "react"
import { createRoot } from "react-dom/client"

const id = new URLSearchParams(location.search).get("chat") ?? "chat"

const Page = () => {
  const { addToolApprovalResponse, messages, sendMessage, status, stop } = useChat({
    id,
    resume: true,
    transport: new DefaultChatTransport({ api: "/api/chat" }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses
  })
  const decide = (approval, approved) => () => void addToolApprovalResponse({ id: approval, approved })
  const stopRun = async () => {
    await fetch(`/api/chat/${id}/stop`, { method: "POST" })
    await stop()
  }
  const parts = messages.flatMap((message) =>
    message.parts.map((part, index) => {
      const key = `${message.id}-${index}`
      if (part.type === "text") return h("p", { key, className: message.role }, part.text)
      if (!isToolUIPart(part)) return null
      return h(
        "p",
        { key, className: "tool" },
        `${part.type} ${part.state} `,
        ...(part.state === "approval-requested"
          ? [h("button", { key: "yes", id: "approve", onClick: decide(part.approval.id, true) }, "Approve")]
          : [])
      )
    })
  )
  return h(
    "main",
    { "data-status": status },
    ...parts,
    h("button", { id: "pay", onClick: () => void sendMessage({ text: "Pay Eva." }) }, "Pay"),
    h("button", { id: "speak", onClick: () => void sendMessage({ text: "Speak." }) }, "Speak"),
    h("button", { id: "stop", onClick: () => void stopRun() }, "Stop")
  )
}

createRoot(document.body).render(h(Page))
