/** Sends the current span with each call, as `traceparent` in its `_meta`, which reaches servers over every transport. */

import type * as McpClient from "effect/ai/McpClient"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Tracer from "effect/Tracer"
import { isRecord } from "../../kit/json.ts"
import { traceparent } from "../../kit/traceparent.ts"

/** Adds the current span to the calls of tools, resources and prompts. */
export const over = (inner: McpClient.Transport): McpClient.Transport => ({
  ...inner,
  request: (message, tool) =>
    Effect.flatMap(Effect.serviceOption(Tracer.ParentSpan), (span) => {
      if (Option.isNone(span) || !calls.has(message.method)) return inner.request(message, tool)
      const meta = message.params?.["_meta"]
      const _meta = { ...(isRecord(meta) ? meta : {}), traceparent: traceparent(span.value) }
      return inner.request({ ...message, params: { ...message.params, _meta } }, tool)
    })
})

const calls: ReadonlySet<string> = new Set(["tools/call", "resources/read", "prompts/get"])
