/**
 * Exports a run as one file: the page, the journals of the run and of the runs below it, and their media. The file
 * works without a network.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { gzipSync } from "node:zlib"
import { plain, type Json } from "../kit/json.ts"
import { recordsOf } from "../store-kit/StoredRuns.ts"
import type { RunNotFound, StoreError } from "../KernelError.ts"
import { MediaStore, type MediaStoreShape } from "../MediaStore.ts"
import { RunStore } from "../RunStore.ts"
import * as PageFiles from "./internal/pageFiles.ts"

/**
 * Returns the file of a run, as HTML.
 *
 * @category converting
 * @since 0.1.0
 */
export const toHtml: (runId: string) => Effect.Effect<string, RunNotFound | StoreError, RunStore | MediaStore> =
  Effect.fnUntraced(function* (runId) {
    const media = yield* MediaStore
    const records = yield* recordsOf(yield* RunStore, runId)
    const shown = records.map((record) => plain(record))
    const [first] = records
    const bytes = yield* Effect.scoped(
      Effect.flatMap(media.run(first?.events[0]?.rootRunId ?? runId), (own) =>
        Effect.forEach(mediaIn(shown), (id) => dataUrlOf(own, id))
      )
    )
    const chunks = []
    for (let at = 0; at < shown.length; at += chunkSize) chunks.push(packed("records", shown.slice(at, at + chunkSize)))
    return pageOf(runId, [
      ...chunks,
      packed(
        "media",
        bytes.filter((one) => one !== undefined)
      )
    ])
  })

/** Returns a medium as a data URL, or undefined if it no longer exists. */
const dataUrlOf = (media: MediaStoreShape, id: string) =>
  Effect.gen(function* () {
    const found = Option.getOrUndefined(yield* media.get(id))
    const bytes = yield* media.bytes(id)
    const type = found?.mimeType ?? "application/octet-stream"
    return { id, url: `data:${type};base64,${Buffer.from(bytes).toString("base64")}` }
  }).pipe(Effect.orElseSucceed(() => undefined))

const chunkSize = 500

/** Encodes data in an inert element, which no browser runs and no text can close. */
const packed = (kind: string, value: unknown): string =>
  `<script type="application/gzip" data-kind="${kind}">${gzipSync(JSON.stringify(value)).toString("base64")}</script>`

const pageOf = (runId: string, data: ReadonlyArray<string>): string => {
  const script = PageFiles.read("page.js")
  const style = PageFiles.read("page.css")
  return `<!doctype html>
<html lang="en" data-run="${encodeURIComponent(runId)}">
<head>
<meta charset="utf-8">
<meta http-equiv="content-security-policy" content="${PageFiles.exportPolicy(script, style)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>kernai run</title>
<style>${style}</style>
</head>
<body><div id="app"></div>
${data.join("\n")}
<script type="module">${script}</script>
</body>
</html>
`
}

/** Returns the ids of stored media anywhere in records. */
const mediaIn = (value: ReadonlyArray<Json>): ReadonlyArray<string> => {
  const ids = new Set<string>()
  const visit = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return
    for (const [key, inner] of Object.entries(value)) {
      if (key === "fileId" && typeof inner === "string") ids.add(inner)
      else visit(inner)
    }
  }
  visit(value)
  return [...ids]
}
