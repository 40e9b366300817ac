/**
 * Media that a store cannot take, find or read.
 */

import * as Schema from "effect/Schema"

/** Two different media with one id (S-20). */
export class MediaConflict extends Schema.TaggedError<MediaConflict>()("MediaConflict", { id: Schema.String }) {
  override get message() {
    return `media id '${this.id}' already names other data`
  }
}

/** No media of this id in the store. */
export class MediaNotFound extends Schema.TaggedError<MediaNotFound>()("MediaNotFound", { id: Schema.String }) {
  override get message() {
    return `no media with id '${this.id}'`
  }
}

/** The media is known but its bytes cannot be read here. */
export class MediaUnreadable extends Schema.TaggedError<MediaUnreadable>()("MediaUnreadable", {
  id: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `media '${this.id}' cannot be read: ${this.reason}`
  }
}
