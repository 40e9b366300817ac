/**
 * Refers to stored media in events and logs.
 */

import * as Contents from "../../Content.ts"
import type { Content } from "../../Content.ts"

/** A reference to a stored medium. */
export interface MediaRef {
  readonly type: "image" | "audio" | "video" | "document"
  /** The id in the `MediaStore`. Absent for a medium that is given by its URL. */
  readonly fileId?: string
  readonly mediaType?: string
}

/** Returns references to the media among contents. */
export const references = (contents: ReadonlyArray<Content>): ReadonlyArray<MediaRef> =>
  contents.filter(Contents.isMedia).map(({ fileId, mediaType, type }) => ({
    type,
    ...(fileId === undefined ? {} : { fileId }),
    ...(mediaType === undefined ? {} : { mediaType })
  }))
