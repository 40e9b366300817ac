/**
 * Reduces messages to contents that every vendor accepts, for authors of providers.
 *
 * A message becomes pieces of five kinds: text, media, native calls, their results and thinking. Media referenced by id
 * are looked up. Media that the format or the model does not accept are replaced by a text. Thinking is kept only for
 * the provider and model that wrote it. Each message is encoded once per model, and the result is kept for as long as
 * the message lives.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import { encoder } from "./internal/encodeMessages.ts"
import * as Parts from "./internal/messageParts.ts"
import type { ProviderError } from "../KernelError.ts"
import type { Message } from "../Message.ts"
import type { Request } from "../Provider.ts"

export type {
  /**
   * A medium that can be sent: bytes as base64, or an address that the vendor reads itself.
   *
   * @category models
   * @since 0.1.0
   */
  MediaPiece,
  /**
   * The form in which a format accepts one kind of media: its MIME types, and whether a medium can be an address.
   *
   * @category models
   * @since 0.1.0
   */
  Form,
  /**
   * The kinds of media that a format supports.
   *
   * @category models
   * @since 0.1.0
   */
  Media,
  /**
   * One piece of a message, by `kind`: `text`, `media`, `call`, `result` or `thought`.
   *
   * @category models
   * @since 0.1.0
   */
  Piece,
  /**
   * The name of the provider, and the media of its format.
   *
   * @category models
   * @since 0.1.0
   */
  Settings
} from "./internal/messageParts.ts"

/**
 * Creates the encoder of a provider. It returns one value for each message of a request, in order. It fails with
 * `ProviderError` of reason `disconnected` if stored media cannot be read at the moment.
 *
 * @example
 * const encode = MessageEncoder.make({ provider: "house", media: { image: { urls: false } } }, (message, pieces) => ({
 *   who: message.role,
 *   says: MessageEncoder.textOf(pieces)
 * }))
 *
 * @category constructors
 * @since 0.1.0
 */
export const make: <A>(
  settings: Parts.Settings,
  encode: (message: Message, pieces: ReadonlyArray<Parts.Piece>, modelId: string) => A
) => (request: Request) => Effect.Effect<ReadonlyArray<A>, ProviderError> = (settings, encode) => {
  const encodeAll = encoder(settings, encode)
  return (request) => Effect.map(encodeAll(request), ({ messages }) => messages)
}

/**
 * Returns the texts among the pieces of a message, joined by `separator`. Default: the empty string.
 *
 * @category rendering
 * @since 0.1.0
 */
export const textOf: (pieces: ReadonlyArray<Parts.Piece>, separator?: string) => string = Parts.textOf

/**
 * Every kind of media, as bytes and as an address.
 *
 * @category constructors
 * @since 0.1.0
 */
export const allMedia: Parts.Media = Parts.allMedia
