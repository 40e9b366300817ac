/** Makes a provider from the details of its vendor: an address, a key, and one or more formats. */

import * as Effect from "effect/Effect"
import { HttpClient } from "effect/http/HttpClient"
import type * as Redacted from "effect/Redacted"
import type { Message } from "../../Message.ts"
import type { VendorRules } from "../../kit/vendorRules.ts"
import type { ProviderError } from "../../KernelError.ts"
import { utf8Length } from "../../kit/text.ts"
import type { ProviderShape, Request } from "../../Provider.ts"
import { endpoint } from "./body.ts"
import type { Decoder, Framing } from "./frames.ts"
import { fitting, namedBack } from "./fitRequest.ts"
import * as Exchange from "./httpCall.ts"
import { type Encoded, encoder } from "./encodeMessages.ts"
import type { Media, Piece } from "./messageParts.ts"
import type { SizeLimit } from "./mediaAllowance.ts"
import { offer } from "./modelList.ts"
import type { Reply } from "./replyParts.ts"

/** The address of a vendor, the authentication of requests, and the list of its models. */
export interface Vendor extends Pick<Exchange.Service, "name" | "headers" | "fault"> {
  readonly apiKey: Redacted.Redacted | undefined
  /** The options that a model accepts. Default: all. */
  readonly takes?: ProviderShape["takes"]
  /** Whether a reply is held to the grammar of its request. Default: unknown. */
  readonly constrains?: ProviderShape["constrains"]
  readonly baseUrl: string
  /** The version that an address may end with, as in `/v1`. */
  readonly version: string
  /** The path of the model list, the key of the list in its document, and the key of an id. */
  readonly list: { readonly path: string; readonly key: string; readonly id: string; readonly query?: string }
}

/** One format of requests and replies. `Wire` is the encoded form of a message. */
export interface Format<Wire> {
  readonly path: (request: Request) => string
  readonly query?: string
  /** Default: `sse`. */
  readonly framing?: Framing
  readonly startsSlowly?: boolean | undefined
  /** The rules of the vendor for this format. */
  readonly rules: VendorRules
  readonly media: Media
  readonly encode: (message: Message, pieces: ReadonlyArray<Piece>, model: string) => Wire
  /** Writes the JSON text of a request. */
  readonly body: (request: Request, messages: ReadonlyArray<Wire>) => string
  readonly decoder: (reply: Reply) => Decoder
}

/** Makes the `stream` of a vendor in one format. */
type Speak = <Wire>(format: Format<Wire>) => ProviderShape["stream"]

/** Makes a provider. It uses the HTTP client in context. */
export const adapter = (
  vendor: Vendor,
  stream: (speak: Speak) => ProviderShape["stream"]
): Effect.Effect<ProviderShape, never, HttpClient> =>
  Effect.map(HttpClient, (client) => {
    const { apiKey, baseUrl, constrains, fault, headers, list, name, takes, version } = vendor
    const service: Exchange.Service = { name, secrets: apiKey === undefined ? [] : [apiKey], headers, fault }
    return {
      name,
      ...(takes === undefined ? {} : { takes }),
      ...(constrains === undefined ? {} : { constrains }),
      models: offer(client, service, endpoint(baseUrl, version, list.path, list.query), list.key, list.id),
      stream: stream((format) => {
        const fit = fitting(format.rules)
        const encode = encoder({ provider: name, media: format.media, limits: format.rules }, format.encode)
        const exchange = Exchange.stream(client, {
          ...service,
          framing: format.framing ?? "sse",
          startsSlowly: format.startsSlowly,
          url: (request) => endpoint(baseUrl, version, format.path(request), format.query),
          body: (request) => bodyOf(format, encode, request),
          decoder: format.decoder
        })
        return (asked) => {
          const { names, request } = fit(asked)
          return namedBack(exchange(request), names)
        }
      })
    }
  })

/** Writes the body of a request. If it is too large, the oldest media are left out. */
const bodyOf = Effect.fnUntraced(function* <Wire>(
  format: Format<Wire>,
  encode: (request: Request, size?: SizeLimit) => Effect.Effect<Encoded<Wire>, ProviderError>,
  request: Request
): Effect.fn.Return<string, ProviderError> {
  const { requestBytes = Infinity } = format.rules
  const { mediaBytes, messages } = yield* encode(request)
  const body = format.body(request, messages)
  if (mediaBytes === 0 || body.length * 3 <= requestBytes) return body
  const excess = utf8Length(body) - requestBytes
  if (excess <= 0) return body
  const fitted = yield* encode(request, { mediaBytes: Math.max(0, mediaBytes - excess - reserve), requestBytes })
  return format.body(request, fitted.messages)
})

/** The bytes kept for the texts in place of media that are left out. */
const reserve = 64 * 1024
