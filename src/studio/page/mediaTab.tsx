/** The media in the messages of a run. Pictures come from the run's own store only. */

import { useSignal } from "@preact/signals"
import type { Content, MediaContent } from "../../Content.ts"
import { Icon } from "./icons.tsx"
import { state } from "./openRun.ts"
import { data, guest } from "./pageStore.ts"

export const MediaTab = () => {
  const shown = state.value
  if (shown === undefined) return null
  const replies = shown.currentTurn?.message === undefined ? [] : [shown.currentTurn.message]
  const results = (shown.currentTurn?.completed ?? []).map(({ name, output = [] }) => ({
    role: name ?? "call",
    content: output
  }))
  const found = new Map<string, readonly [MediaContent, string]>()
  for (const { content, role } of [...shown.prompt, ...replies, ...results]) {
    for (const part of content.flatMap(mediaIn)) if (part.fileId !== undefined) found.set(part.fileId, [part, role])
  }
  if (found.size === 0) return <p class="empty">The run has no media. A user, a skill or the model can add some.</p>
  return (
    <ul class="media">
      {[...found].map(([id, [part, role]]) => (
        <li key={id}>
          <Preview id={id} part={part} runId={shown.rootRunId} />
          <p>
            {id}
            <br />
            <span class="quiet">
              {part.type}, {part.mediaType ?? "type unknown"}, from {role}
            </span>
          </p>
        </li>
      ))}
    </ul>
  )
}

export const isMedia = (part: Content): part is MediaContent =>
  part.type === "image" || part.type === "audio" || part.type === "video" || part.type === "document"

const mediaIn = (part: Content): ReadonlyArray<MediaContent> =>
  part.type === "tool_result" ? part.content.flatMap(mediaIn) : isMedia(part) ? [part] : []

export const Preview = ({ id, part, runId }: { id: string; part: MediaContent; runId: string }) => {
  const isLost = useSignal(false)
  const onError = () => (isLost.value = true)
  const url = data().mediaUrl(runId, id)
  if (isLost.value) return <p class="quiet">{part.type === "image" ? "picture" : part.type} not available</p>
  if (part.type === "image" && part.mediaType !== "image/svg+xml") {
    return <img src={url} alt={guest.value === undefined ? id : "picture"} loading="lazy" onError={onError} />
  }
  if (part.type === "audio") return <audio src={url} controls onError={onError} />
  if (part.type === "video") return <video src={url} controls onError={onError} />
  return (
    <a class="button file" href={url} download>
      <Icon name="download" /> {("filename" in part ? part.filename : undefined) ?? fileWord(part)}
    </a>
  )
}

const fileWord = ({ mediaType = "" }: MediaContent): string => {
  const [, format] = /^\w+\/([a-z]{2,4})(?:[;+]|$)/.exec(mediaType) ?? []
  return format === undefined ? "file" : `${format.toUpperCase()} file`
}

/** The media among the parts of a message. */
export const MediaParts = ({ parts, runId }: { parts: ReadonlyArray<Content>; runId: string }) =>
  parts.map((part, index) =>
    isMedia(part) && part.fileId !== undefined ? (
      <Preview key={index} id={part.fileId} part={part} runId={runId} />
    ) : null
  )
