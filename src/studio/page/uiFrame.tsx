/**
 * The page of a `ui_resource`, in a frame that can only send messages to this window. Its requests wait for a person,
 * and then go through the run as messages of that person.
 */

import { useSignal } from "@preact/signals"
import { useLayoutEffect, useRef } from "preact/hooks"
import { json } from "./format.ts"
import { canChange, data } from "./pageStore.ts"
import { isFields } from "./schemaForm.tsx"
import { StatusShape } from "./status.tsx"
import { isDark } from "./theme.ts"

interface Props {
  readonly server: string
  readonly uri: string
  readonly structured: unknown
  /** Sends a message to the agent. Absent if that is not possible. */
  readonly onMessage?: ((text: string) => void) | undefined
}

/** A request of the page that waits for a person. */
interface Asked {
  readonly id: unknown
  readonly words: string
  readonly message: string
}

const longest = 100_000

export const UiFrame = ({ onMessage, server, structured, uri }: Props) => {
  const frame = useRef<HTMLIFrameElement>(null)
  const asked = useSignal<ReadonlyArray<Asked>>([])
  const height = useSignal(240)
  // A page that is loaded before the first frame is drawn sends its first messages before an effect runs.
  useLayoutEffect(() => {
    const reply = (message: object) => frame.current?.contentWindow?.postMessage({ jsonrpc: "2.0", ...message }, "*")
    const listen = ({ data: message, source }: MessageEvent) => {
      // Only messages of this frame's window are accepted.
      if (source === null || source !== frame.current?.contentWindow || !isFields(message)) return
      const { id, method, params } = message
      if (JSON.stringify(message).length > longest) return
      if (method === "ui/initialize") reply({ id, result: welcome() })
      if (method === "ui/notifications/initialized") {
        reply({ method: "ui/notifications/tool-result", params: { content: [], structuredContent: structured } })
      }
      if (method === "ui/notifications/size-changed") height.value = heightOf(params)
      const request = requestOf(id, method, params)
      if (request !== undefined) asked.value = [...asked.value.slice(-4), request]
    }
    addEventListener("message", listen)
    return () => removeEventListener("message", listen)
  }, [])
  const decide = (request: Asked, isAllowed: boolean) => {
    asked.value = asked.value.filter((one) => one !== request)
    const answer = isAllowed ? { result: {} } : { error: { code: -32_000, message: "a person refused it" } }
    frame.current?.contentWindow?.postMessage({ jsonrpc: "2.0", id: request.id, ...answer }, "*")
    if (isAllowed) onMessage?.(request.message)
  }
  return (
    <>
      <iframe
        ref={frame}
        class="page"
        title={`page ${uri}`}
        sandbox="allow-scripts"
        referrerpolicy="no-referrer"
        style={{ height: `${height.value}px` }}
        src={data().pageUrl(server, uri)}
      />
      {asked.value.map((request, index) => (
        <div key={index} class="card waiting" role="group" aria-label="The page asks">
          <p>
            <StatusShape status="waiting" /> The page of {server} asks: {request.words}
          </p>
          <p class="actions">
            {canChange.value && onMessage !== undefined && (
              <button class="primary" onClick={() => decide(request, true)}>
                Send it to the agent
              </button>
            )}
            <button onClick={() => decide(request, false)}>Refuse</button>
          </p>
        </div>
      ))}
    </>
  )
}

const welcome = () => ({
  protocolVersion: "2026-01-26",
  hostInfo: { name: "kernai studio", version: "1" },
  hostCapabilities: {},
  hostContext: { theme: isDark.value ? "dark" : "light" }
})

const heightOf = (params: unknown): number => {
  const height = isFields(params) ? Number(params["height"]) : NaN
  return Number.isFinite(height) ? Math.max(60, Math.min(height, 600)) : 240
}

const requestOf = (id: unknown, method: unknown, params: unknown): Asked | undefined => {
  if (!isFields(params)) return undefined
  if (method === "tools/call") {
    const words = `${String(params["name"])} with ${json(params["arguments"])}`
    return { id, words: `the call ${words}`, message: `Please call ${words}.` }
  }
  if (method !== "ui/message") return undefined
  const content = Array.isArray(params["content"]) ? params["content"] : [params["content"]]
  const text = content
    .map((part) => (isFields(part) && typeof part["text"] === "string" ? part["text"] : ""))
    .join("\n")
  return { id, words: `the message "${text}"`, message: text }
}
