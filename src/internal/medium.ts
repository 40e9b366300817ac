/**
 * Media as content, by their kind (CP-4).
 *
 * @since 0.1.0
 */
import type { MediaContent, OneSource } from "../Content.ts"
import * as Content from "../Content.ts"
import type { Kind } from "../Media.ts"

/** The content that shows a medium of a kind. */
export const mediumOf = (kind: Kind, source: OneSource): MediaContent => {
  switch (kind) {
    case "image":
      return Content.image(source)
    case "audio":
      return Content.audio(source)
    case "video":
      return Content.video(source)
    case "document":
      return Content.document(source)
  }
}
