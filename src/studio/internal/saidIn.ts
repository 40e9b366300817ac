/** The text of a reply that people read: what stands around its blocks, and the contents of its final blocks. */

import type { Message } from "../../Message.ts"
import { perObject } from "../../kit/perObject.ts"
import { readReply } from "./readReply.ts"

export const saidIn: (message: Message) => string = perObject((message) => {
  const written = message.content.map((part) => (part.type === "text" ? part.text : "")).join("")
  if (!written.includes("<")) return written
  const { blocks, pieces } = readReply(written)
  return pieces
    .map(({ block, text }) => {
      const found = block === undefined ? undefined : blocks[block]
      if (found === undefined) return text
      return found.type === "final" ? found.content : ""
    })
    .join("")
})
