/**
 * Errors of media stores.
 */

import * as Schema from "effect/Schema"

/** The media id already names different data. */
export class MediaConflict extends Schema.TaggedError<MediaConflict>()("MediaConflict", { id: Schema.String }) {
  override get message() {
    return `media id '${this.id}' already names other data`
  }
}

/** The store has no media with this id. */
export class MediaNotFound extends Schema.TaggedError<MediaNotFound>()("MediaNotFound", { id: Schema.String }) {
  override get message() {
    return `no media with id '${this.id}'`
  }
}

/** The store knows the media but cannot read its bytes. */
export class MediaUnreadable extends Schema.TaggedError<MediaUnreadable>()("MediaUnreadable", {
  id: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `media '${this.id}' cannot be read: ${this.reason}`
  }
}
