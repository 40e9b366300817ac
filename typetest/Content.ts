/** What the types of contents and media promise to their users. */
import type { Schema } from "effect"
import { Content, MediaStore } from "kernai"

type Equals<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const yes = <T extends true>(): T | undefined => undefined

/** A switch over `type` is complete and narrows, although unknown fields and types survive. */
export const name = (content: Content.Content): string => {
  switch (content.type) {
    case "text":
      yes<Equals<typeof content, Content.Text>>()
      return content.text
    case "code":
      return content.code
    case "data":
      return String(content.data["x"])
    case "error":
      return content.errorType
    case "image":
    case "audio":
    case "video":
    case "document":
      yes<Equals<typeof content, Content.MediaContent>>()
      return content.fileId ?? ""
    case "tool_use":
      return content.name
    case "tool_result":
      return content.content.map(name).join()
    case "thinking":
      return content.content
    case "ui_resource":
      return content.uri
    case "source":
      return content.url ?? content.title ?? ""
    case "custom":
    case "unknown":
      return content.wireType
  }
}

// No index signature shows.
// @ts-expect-error a text has no such field
export const absent = (text: Content.Text) => text.anything

// @ts-expect-error an image has exactly one source
Content.image({ url: "u", fileId: "f" })
// @ts-expect-error an image has a source
Content.image({ mediaType: "image/png" })
// @ts-expect-error a sound has a source
Content.audio({ transcript: "x" })
Content.audio({ url: "u", data: new Uint8Array() })

// @ts-expect-error contents are immutable
Content.text("x").text = "y"

yes<Equals<(typeof Content.Content)["Type"], Content.Content>>()
yes<Equals<(typeof MediaStore.Reference)["DecodingServices"], MediaStore.MediaStore>>()
export const reference: Schema.Codec<MediaStore.StoredMedia, string, MediaStore.MediaStore> = MediaStore.Reference
