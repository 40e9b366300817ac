/** Fetches the media that an input names by their URL, so that they are stored with its run. */

import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Content, MediaContent } from "../../Content.ts"
import * as Contents from "../../Content.ts"
import { kindOf } from "../../Media.ts"
import { type HttpProblem, Invalid } from "../HttpProblem.ts"

/** Replaces the media that have a URL by their bytes. */
export type FetchMedia = (
  input: string | ReadonlyArray<Content>
) => Effect.Effect<string | ReadonlyArray<Content>, HttpProblem>

/** Creates the function that fetches from public hosts, and from further origins. */
export const make = Effect.fnUntraced(function* (
  origins: ReadonlyArray<string>,
  fetchedBytes: number
): Effect.fn.Return<FetchMedia, never, Scope.Scope> {
  const { make } = yield* Effect.promise(() => import("./guardedHttp.ts"))
  const client = HttpClient.followRedirects(yield* make(origins), mostRedirects)
  return (input) => (typeof input === "string" ? Effect.succeed(input) : fetchAll(client, input, fetchedBytes))
})

/** Fetches one medium after the other. Together they have at most `fetchedBytes`. */
const fetchAll = Effect.fnUntraced(function* (
  client: HttpClient.HttpClient,
  input: ReadonlyArray<Content>,
  fetchedBytes: number
): Effect.fn.Return<ReadonlyArray<Content>, HttpProblem> {
  const named = input.filter((content) => Contents.isMedia(content) && content.url !== undefined)
  if (named.length > mostFiles) return yield* new Invalid({ detail: `a message names at most ${mostFiles} files` })
  let left = fetchedBytes
  const contents: Array<Content> = []
  for (const content of input) {
    if (!Contents.isMedia(content) || content.url === undefined) {
      contents.push(content)
      continue
    }
    const { bytes, mediaType } = yield* fetchOne(client, content, content.url, left)
    left -= bytes.length
    contents.push(Contents[kindOf(mediaType)]({ data: bytes, mediaType }))
  }
  return contents
})

const fetchOne = (client: HttpClient.HttpClient, medium: MediaContent, url: string, most: number) =>
  Effect.gen(function* () {
    const response = yield* client.execute(HttpClientRequest.get(url))
    if (response.status !== 200) return yield* refused(url, `its server responded with ${response.status}`)
    const bytes = yield* response.stream.pipe(
      Stream.mapError(() => unreachable(url)),
      Stream.limitBytes(most, () => Stream.fail(refused(url, "the files of a message are too large"))),
      Stream.mkUint8Array
    )
    return { bytes, mediaType: typeOf(medium, response.headers["content-type"]) }
  }).pipe(
    Effect.timeout("30 seconds"),
    Effect.mapError((error) => (error instanceof Invalid ? error : unreachable(url)))
  )

/** Returns the given type, unless it names only the kind of the file. */
const typeOf = ({ mediaType }: MediaContent, responded: string | undefined): string => {
  const isExact = mediaType !== undefined && !mediaType.endsWith("/*") && mediaType !== unknown
  return isExact ? mediaType : (responded?.split(";", 1)[0]?.trim() ?? unknown)
}

const unknown = "application/octet-stream"

/** Returns the problem of a file. Its query may hold a secret. */
const refused = (url: string, why: string): Invalid => {
  const { host = "", pathname = "" } = URL.parse(url) ?? {}
  return new Invalid({ detail: `the file ${host}${pathname} cannot be fetched: ${why}`.slice(0, 1_000) })
}

const unreachable = (url: string): Invalid => refused(url, "no public server responds there in time")

const mostRedirects = 3

const mostFiles = 16
