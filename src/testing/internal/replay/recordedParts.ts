/**
 * Recorded replies as the parts that a provider would send.
 */

import type { HostedCall } from "../../../Call.ts"
import type { Content } from "../../../Content.ts"
import type { PhaseEvent } from "../../../RunEvent.ts"
import type { StreamPart } from "../../../StreamPart.ts"
import * as StreamParts from "../../../StreamPart.ts"

/** Splits `<provider>/<model>`. The name of the model may hold more slashes. */
export const split = (model: string): readonly [string, string] => {
  const at = model.indexOf("/")
  return [model.slice(0, at), model.slice(at + 1)]
}

/** Returns a reply as the parts that a provider would send. */
export const partsOf = (event: Extract<PhaseEvent, { type: "model_completed" }>): ReadonlyArray<StreamPart> => {
  const faulty = new Set(event.calls.flatMap((call) => (call.fault === undefined ? [] : [call.callId])))
  const [provider] = split(event.model)
  const { usage } = event
  return [
    ...event.message.content.flatMap((part, index) => partsOfContent(part, String(index), provider, faulty)),
    ...(event.hosted ?? []).flatMap(hostedParts),
    StreamParts.finish(
      event.finishReason,
      usage === null
        ? StreamParts.unreported
        : {
            inputTokens: {
              total: usage.inputTokens,
              cacheRead: usage.cachedTokens,
              cacheWrite: usage.cacheWriteTokens
            },
            outputTokens: { total: usage.outputTokens, reasoning: usage.reasoningTokens }
          }
    )
  ]
}

const hostedParts = ({ callId: id, input: params, isError, name, sources }: HostedCall): ReadonlyArray<StreamPart> => [
  { type: "tool-call", id, name, params, providerExecuted: true },
  { type: "tool-result", id, name, result: { sources }, isFailure: isError === true, providerExecuted: true }
]

const partsOfContent = (
  part: Content,
  id: string,
  provider: string,
  faulty: ReadonlySet<string>
): ReadonlyArray<StreamPart> => {
  switch (part.type) {
    case "text":
      return [
        { type: "text-start", id },
        { type: "text-delta", id, delta: part.text },
        { type: "text-end", id }
      ]
    case "thinking":
      return [
        { type: "reasoning-start", id },
        { type: "reasoning-delta", id, delta: part.content },
        {
          type: "reasoning-end",
          id,
          ...(part.signature === undefined ? {} : { metadata: { [provider]: part.signature } })
        }
      ]
    case "source": {
      const facts = { type: "source", id, title: part.title ?? "", ...(part.quote && { quote: part.quote }) } as const
      return part.url === undefined
        ? [{ ...facts, sourceType: "document", mediaType: "application/octet-stream" }]
        : [{ ...facts, sourceType: "url", url: part.url }]
    }
    case "tool_use":
      // Invalid input was recorded as absent, and is invalid again.
      return [
        {
          type: "tool-call",
          id: part.callId,
          name: part.name,
          params: faulty.has(part.callId) ? "" : part.input
        }
      ]
    case "image":
    case "audio":
    case "video":
    case "document":
      return part.fileId === undefined
        ? []
        : [{ type: "file", mediaType: part.mediaType ?? "application/octet-stream", data: "", fileId: part.fileId }]
    default:
      return []
  }
}
