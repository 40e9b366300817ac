/** The commands of a chat. */

const commands: ReadonlyArray<readonly [usage: string, about: string]> = [
  ["/history", "show the last 50 messages"],
  ["/skills", "show what the model may call"],
  ["/retry", "continue an answer that was stopped or failed"],
  ["/plan, /work", "change nothing, or carry the plan out (with --workspace)"],
  ["/undo", "take back the files that the last message changed"],
  ["/new [name]", "start another session"],
  ["/sessions", "list all sessions"],
  ["/session NAME", "go to a session"],
  ["/exit", "end the chat, as Ctrl-D does"],
  ["/help", "show this"],
  ["//text", "send a message that begins with a slash"]
]

/** The words that Tab completes. */
export const words: ReadonlyArray<string> = commands.flatMap(([usage]) => usage.match(/(?<!\/)\/[a-z]+/g) ?? [])

export const help = `${commands.map(([usage, about]) => `${usage.padEnd(15)} ${about}\n`).join("")}Tab completes a command, and the arrow keys go through earlier messages.
Alt-Enter, or a \\ at the end of a line, continues a message on another line, shown as ↵.
Ctrl-C stops the answer that is streaming.
`
