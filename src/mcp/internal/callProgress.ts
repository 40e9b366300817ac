/**
 * Sends the progress of a call to the client that asked for it with a progress token.
 */

import * as McpSchema from "effect/ai/McpSchema"
import type { McpServer } from "effect/ai/McpServer"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { isRecord, own, plain } from "../../kit/json.ts"
import { shorten } from "../../kit/text.ts"
import type { Redactor } from "../../Redaction.ts"
import type { CallScope } from "../../Skill.ts"

/** Creates the reporter for the call of the current request, or undefined if its client sent no token. */
export const make = Effect.fnUntraced(function* (
  server: McpServer["Service"],
  redactor: Redactor | undefined
): Effect.fn.Return<CallScope["report"], never, McpSchema.McpRequestContext> {
  const request = yield* McpSchema.McpRequestContext
  const progressToken = isRecord(request.requestMetadata) ? own(request.requestMetadata, "progressToken") : undefined
  if (typeof progressToken !== "string" && typeof progressToken !== "number") return undefined
  let count = 0
  let sentAt = -Infinity
  return Effect.fnUntraced(
    function* (report) {
      const now = yield* Clock.currentTimeMillis
      if (report._tag !== "Progress" || now - sentAt < pauseMs) return
      sentAt = now
      const shown = shownAs(plain(report.progress, redactor?.text), ++count)
      yield* server.notifications["notifications/progress"]({ progressToken, ...shown })
    },
    Effect.provideService(McpSchema.McpRequestContext, request)
  )
})

// The same interval as the progress events of a run.
const pauseMs = 100

/**
 * Converts a report. A number is the progress itself. An object may hold `progress`, `total` and `message`. Anything
 * else is the message, and the progress counts the reports.
 */
const shownAs = (value: unknown, count: number) => {
  if (typeof value === "number") return { progress: value }
  const { message, progress, total } = isRecord(value) ? value : {}
  return typeof progress === "number"
    ? {
        progress,
        ...(typeof total === "number" ? { total } : {}),
        ...(typeof message === "string" ? { message: shorten(message, longest) } : {})
      }
    : { progress: count, message: shorten(typeof value === "string" ? value : JSON.stringify(value), longest) }
}

const longest = 1_000
