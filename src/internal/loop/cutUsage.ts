/**
 * The usage of a reply that was cut: by an interruption, a lost connection, or a reader that stopped.
 *
 * Vendors charge for such a reply. Some report the prompt before the first word: then it counts, with the output that
 * arrived, about, and the usage is marked partial. Nothing is known of a reply whose vendor reports only at the end.
 */

import type { Reply } from "../../Dialect.ts"
import * as Usage from "../../Usage.ts"
import { estimate } from "../prompt/tokenEstimate.ts"
import { hasBegun } from "./modelReply.ts"

/** Returns the usage of a cut reply. Null if its vendor reported nothing. */
export const cutUsage = (reply: Reply): Usage.Usage | null => {
  const { content, reported } = reply
  if (reported === undefined) return null
  const { inputTokens, outputTokens } = reported
  const arrived = !hasBegun(reply) ? 0 : estimate({ role: "assistant", content })
  const total = Math.max(arrived, outputTokens.total ?? 0)
  const usage = Usage.fromAi({ inputTokens, outputTokens: { ...outputTokens, total } })
  return usage === undefined ? null : { ...usage, partial: true }
}
