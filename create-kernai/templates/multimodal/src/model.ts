import { Message } from "kernai"
import { MockProvider } from "kernai/testing"

/** A scripted model that draws, looks for the picture's id, and measures it. */
export const model = () =>
  MockProvider.make().onCall(({ messages }) => {
    const text = messages.map(Message.text).join("\n")
    const bytes = /(\d+) bytes/.exec(text)?.[1]
    if (bytes !== undefined) return `<final>The picture has ${bytes} bytes.</final>`
    const id = /id="(media_[0-9a-f]+)"/.exec(text)?.[1]
    return id === undefined
      ? `<block type="command" name="draw">{"what": "a dot"}</block>`
      : `<block type="command" name="measure">{"image": "${id}"}</block>`
  })
