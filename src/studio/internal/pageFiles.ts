/**
 * The files of the page, built from `src/studio/page` by `npm run page`.
 */

import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"

// Three folders up, from `src/studio/internal` and `dist/studio/internal`: the package contains src.
const folder = new URL("../../../src/studio/assets/", import.meta.url)

/** A file of the page. */
export type PageFile = "page.js" | "charts.js" | "chat.js" | "page.css" | "icon.svg"

/** Reads a file of the page. */
export const read = (name: PageFile): string => readFileSync(new URL(name, folder), "utf8")

/** Returns the document of the page. `base` is the path of the studio, with a slash at its end. */
export const documentOf = (base: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>kernai studio</title>
<link rel="icon" href="${base}icon.svg">
<link rel="stylesheet" href="${base}page.css">
<script type="module" src="${base}page.js"></script>
</head>
<body><div id="app"></div></body>
</html>
`

/** Returns the content security policy of a page: only resources of its own server. Pages of `origins` may frame it. */
export const framedIn = (origins: ReadonlyArray<string>): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "media-src 'self'",
    "connect-src 'self'",
    "frame-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    `frame-ancestors ${origins.join(" ") || "'none'"}`,
    "require-trusted-types-for 'script'",
    "trusted-types 'none'"
  ].join("; ")

/** The policy of a page that no page may frame. */
export const policy = framedIn([])

/** Returns the content security policy of an exported file: only its own script and style, and no network. */
export const exportPolicy = (script: string, style: string): string =>
  [
    "default-src 'none'",
    `script-src '${hashOf(script)}'`,
    `style-src '${hashOf(style)}'`,
    "img-src data:",
    "media-src data:",
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'"
  ].join("; ")

const hashOf = (text: string): string => `sha256-${createHash("sha256").update(text).digest("base64")}`
