/** The sources of an answer, as lines for a terminal. */

import * as Messages from "../Message.ts"
import type { Message } from "../Message.ts"
import * as Text from "./terminalText.ts"

/** Returns a line for each source that messages name, below a title. Empty without sources. */
export const sourceLines = (messages: ReadonlyArray<Message>, look: Text.Look): string => {
  const lines = new Set(
    Messages.sources(messages).map(({ title, url }) => {
      const named = [title, url].filter((word) => word !== undefined && word !== "")
      return `  ${Text.excerpt(named.join(", "), look.columns - 2)}`
    })
  )
  return lines.size === 0 ? "" : `\n${Text.paint("sources", "title", look)}\n${[...lines].join("\n")}\n`
}
