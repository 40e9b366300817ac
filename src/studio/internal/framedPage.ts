/**
 * Serves pages of `ui_resource` contents in documents of their own, without access to the network, to storage or to the
 * surrounding page.
 */

import * as Effect from "effect/Effect"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import { type HttpProblem, NotFound } from "../../http/HttpProblem.ts"
import type { McpHubShape } from "../../mcp/McpHub.ts"

/** Reads the pages of MCP servers. */
export type Pages = Pick<McpHubShape, "readPage">

/** The content security policy of such a page: it may run its own inline scripts and styles, in an opaque origin. */
const policy = [
  "sandbox allow-scripts",
  "default-src 'none'",
  "script-src 'unsafe-inline'",
  "style-src 'unsafe-inline'",
  "img-src data:",
  "media-src data:",
  "font-src data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'self'"
].join("; ")

/** Responds with a page. */
export const framed = (
  pages: Pages | undefined,
  { server, uri }: { readonly server: string; readonly uri: string }
): Effect.Effect<HttpServerResponse.HttpServerResponse, HttpProblem> => {
  const missing = new NotFound({ what: "medium", id: uri.slice(0, 200) })
  if (pages === undefined) return Effect.fail(missing)
  return pages.readPage(server, uri).pipe(
    Effect.mapError(() => missing),
    Effect.map(({ html }) =>
      HttpServerResponse.text(html, {
        contentType: "text/html; charset=utf-8",
        headers: {
          "content-security-policy": policy,
          "x-content-type-options": "nosniff",
          "referrer-policy": "no-referrer",
          "cross-origin-resource-policy": "same-origin",
          "cache-control": "no-store"
        }
      })
    )
  )
}
