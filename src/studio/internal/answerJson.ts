/** Answers of the studio, compressed for clients that accept it. */

import * as Effect from "effect/Effect"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import { gzipSync } from "node:zlib"

/** Answers with a value as JSON that nobody keeps. */
export const json = (value: unknown) =>
  text(JSON.stringify(value), { contentType: "application/json", headers: { "cache-control": "no-store" } })

interface Options {
  readonly contentType: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Answers with a text. */
export const text = (body: string, { contentType, headers }: Options) =>
  Effect.map(HttpServerRequest.HttpServerRequest, ({ headers: asked }) => {
    const vary = { ...headers, vary: "accept-encoding" }
    return body.length < least || !acceptsGzip.test(asked["accept-encoding"] ?? "")
      ? HttpServerResponse.text(body, { contentType, headers: vary })
      : HttpServerResponse.uint8Array(gzipSync(body, { level: 3 }), {
          contentType,
          headers: { ...vary, "content-encoding": "gzip" }
        })
  })

/** The length of a text from which compression pays. */
const least = 1_000

const acceptsGzip = /(^|,)\s*gzip\s*(,|$|;\s*q=(1|0\.0*[1-9]))/i
