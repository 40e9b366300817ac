/** The document and the files of the page of end users. */

import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import type { PageOptions } from "../ChatPage.ts"
import * as GuestAccess from "./guestAccess.ts"
import * as PageFiles from "./pageFiles.ts"
import { admitted, file } from "./pageRoutes.ts"

/** What the page is told by its document. */
export interface Guest {
  readonly name: string
  readonly starters: ReadonlyArray<string>
  readonly consent?: string | undefined
  /** Whether answers can be scored. */
  readonly canScore: boolean
}

/** Adds the routes of the page. */
export const layer = (path: `/${string}`, options: PageOptions): Layer.Layer<never, never, HttpRouter.HttpRouter> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const { authenticate, consent, embedIn = [], evaluations, name = "Chat", starters = [], style = "" } = options
      const router = yield* HttpRouter.HttpRouter
      const guest: Guest = { name, starters, consent, canScore: evaluations !== undefined }
      const document = HttpServerResponse.html(documentOf(`${path}/`, guest))
      const opened =
        authenticate === undefined ? GuestAccess.welcome(document, path, embedIn.length > 0) : Effect.succeed(document)
      const policy = PageFiles.framedIn(embedIn)
      yield* router.add("GET", path, admitted(options, opened, policy))
      yield* router.add("GET", `${path}/chat.js`, admitted(options, file("chat.js", "text/javascript; charset=utf-8")))
      yield* router.add("GET", `${path}/page.css`, admitted(options, file("page.css", "text/css; charset=utf-8")))
      yield* router.add("GET", `${path}/icon.svg`, admitted(options, file("icon.svg", "image/svg+xml")))
      const own = HttpServerResponse.text(style, { contentType: "text/css; charset=utf-8" })
      yield* router.add("GET", `${path}/own.css`, admitted(options, Effect.succeed(own)))
    })
  )

const documentOf = (base: string, guest: Guest): string => `<!doctype html>
<html lang="en" data-guest="${escaped(JSON.stringify(guest))}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(guest.name)}</title>
<link rel="icon" href="${base}icon.svg">
<link rel="stylesheet" href="${base}page.css">
<link rel="stylesheet" href="${base}own.css">
<script type="module" src="${base}chat.js"></script>
</head>
<body><div id="app"></div></body>
</html>
`

const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")
