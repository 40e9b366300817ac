/**
 * Asking a server for something, and making its answer fit for a model.
 *
 * A page for the user becomes a `ui_resource`, which no model reads (CP-5). Of
 * an answer that is too long the model gets the beginning, and the whole is
 * kept among the run's media.
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Content from "../../Content.ts"
import { cut } from "../../internal/base/text.ts"
import { isJsonObject, type JsonObject, jsonObject, plain } from "../../internal/base/json.ts"
import { McpError } from "../../KernelError.ts"
import { Limits } from "../../Limits.ts"
import * as Media from "../../Media.ts"
import { MediaStore } from "../../MediaStore.ts"
import type { Effects } from "../../Skill.ts"
import * as Definition from "./definition.ts"
import * as Render from "./renderResult.ts"
import type { Station, StationTool } from "./mcpServer.ts"

/** The media type of a page (MCP Apps). */
const pageType = "text/html;profile=mcp-app"

/** What a call does to the world: a foreign server's word counts only where it is trusted (AC-15). */
export const effectsOf = ({ server }: Station, { tool }: StationTool): Effects => {
  if (!server.trustAnnotations) return "write"
  if (tool.annotations?.readOnlyHint === true) return "read"
  return tool.annotations?.idempotentHint === true ? "idempotent" : "write"
}

/** Calls a tool, if it is still the one that was accepted. */
export const callTool = Effect.fnUntraced(function* (
  station: Station,
  tool: StationTool,
  input: { readonly [key: string]: unknown }
) {
  const result = yield* station.connection.callTool(tool.tool.name, input, {
    repeatable: effectsOf(station, tool) !== "write",
    accepts: (now) => Definition.textOf(now) === tool.text
  })
  const page = Definition.pageOf(tool.tool)
  const answer = Render.render(page === undefined ? result : { content: result.content, isError: result.isError })
  if (page === undefined || answer.isError) return yield* fit(station, answer)
  const structured = plain(result.structuredContent ?? null)
  const shown = Content.uiResource(page, {
    mimeType: pageType,
    ...(isJsonObject(structured) ? { structuredContent: structured } : {})
  })
  return yield* fit(station, { ...answer, content: [...answer.content, shown] })
})

/** Reads a resource. */
export const readResource = (station: Station, uri: string): Effect.Effect<Render.Rendered, McpError> =>
  Effect.flatMap(station.connection.readResource(uri), (result) => fit(station, Render.resource(result)))

/** A page as its server wrote it. */
export interface Page {
  readonly uri: string
  readonly mimeType: string
  readonly html: string
  /** What the page asks for: hosts it wants to reach, and more. */
  readonly meta: JsonObject
}

/** Reads a page. */
export const readPage = Effect.fnUntraced(function* (station: Station, uri: string): Effect.fn.Return<Page, McpError> {
  const { contents } = yield* station.connection.readResource(uri)
  const [page] = contents
  const mimeType = page?.mimeType ?? ""
  if (!Definition.isPage(uri) || page?.uri !== uri || !("text" in page) || !mimeType.startsWith("text/html")) {
    return yield* new McpError({
      server: station.name,
      reason: "not_found",
      detail: `MCP server '${station.name}' has no page ${uri}`
    })
  }
  return { uri, mimeType, html: page.text, meta: jsonObject(plain(page._meta ?? {})) }
})

/** Gets a prompt; a prompt's arguments are texts. */
export const getPrompt = (
  station: Station,
  name: string,
  input: { readonly [key: string]: unknown }
): Effect.Effect<Render.Rendered, McpError> => {
  const texts = Object.fromEntries(
    Object.entries(input).map(([key, value]) => [key, typeof value === "string" ? value : JSON.stringify(plain(value))])
  )
  return Effect.flatMap(station.connection.getPrompt(name, texts), (result) => fit(station, Render.prompt(result)))
}

/** An answer a server calls an error, as the failure it is. */
export const succeeded = (
  server: string,
  answer: Render.Rendered
): Effect.Effect<ReadonlyArray<Content.Content>, McpError> =>
  answer.isError
    ? Effect.fail(new McpError({ server, reason: "remote", detail: errorText(answer) }))
    : Effect.succeed(answer.content)

const errorText = ({ content }: Render.Rendered): string => {
  const told = content
    .map((part) =>
      part.type === "error" ? part.message : Content.isMedia(part) ? `[${part.type} left out]` : Content.toText(part)
    )
    .filter((text) => text !== "")
    .join("\n")
  return told === "" ? "the tool failed and did not say why" : told
}

/** Names who made a page, because only that server is asked for it; and keeps the whole of what is too long. */
const fit = Effect.fnUntraced(function* (station: Station, answer: Render.Rendered) {
  const limits = yield* Limits
  const content = lined(
    answer.content.map((part) =>
      part.type === "ui_resource" ? Object.freeze({ ...part, server: station.name }) : part
    )
  )
  const told = content.filter((part) => !isCarried(part))
  const text = told.map((part) => (part.type === "error" ? part.message : Content.toText(part))).join("\n")
  // A UTF-16 unit is at most three bytes: most answers need no measuring.
  if (text.length * 3 <= limits.resultBytes) return { ...answer, content }
  const bytes = new TextEncoder().encode(text)
  if (bytes.byteLength <= limits.resultBytes) return { ...answer, content }
  const id = yield* keep(bytes)
  const where = id === undefined ? "" : `; the whole is kept as ${id}`
  const note = `[The answer has ${bytes.byteLength} bytes. This is its beginning${where}. Ask for a smaller part of it.]`
  const start = cut(text, limits.resultBytes)
  return {
    ...answer,
    content: [
      answer.isError ? Content.error("McpToolError", `${note}\n${start}`) : Content.text(`${note}\n${start}`),
      ...content.filter(isCarried)
    ]
  }
})

/** A kernel puts texts one after the other as they stand: what follows a text begins on a line of its own. */
const lined = (content: ReadonlyArray<Content.Content>): ReadonlyArray<Content.Content> =>
  content.map((part, index) => {
    const next = content[index + 1]
    const goesOn = next !== undefined && !Content.isMedia(next)
    return part.type === "text" && goesOn && !part.text.endsWith("\n") ? Content.text(`${part.text}\n`) : part
  })

/** What is not told as text: media go to their store, pages to the user. */
const isCarried = (part: Content.Content): boolean => Content.isMedia(part) || part.type === "ui_resource"

/** Keeps a text among the media of the run, if there is one and it has room. */
const keep = Effect.fnUntraced(function* (bytes: Uint8Array) {
  const store = yield* Effect.serviceOption(MediaStore)
  if (Option.isNone(store)) return undefined
  const stored = yield* Effect.result(store.value.put(Media.fromBytes(bytes, "text/plain")))
  return Result.isSuccess(stored) ? stored.success.id : undefined
})
