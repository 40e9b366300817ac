/** Sends requests to a server and shortens the answers for a model. */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Content from "../../Content.ts"
import { cut } from "../../kit/text.ts"
import { isJsonObject, jsonObject, plain } from "../../kit/json.ts"
import { wellFormedJson } from "../../kit/soundText.ts"
import { McpError } from "../../KernelError.ts"
import { Limits } from "../../Limits.ts"
import * as Media from "../../Media.ts"
import { MediaStore } from "../../MediaStore.ts"
import type { Effects } from "../../Skill.ts"
import type { Page } from "../McpHub.ts"
import type { Answer } from "../McpProtocol.ts"
import * as Definition from "./definition.ts"
import * as HubHost from "./hubHost.ts"
import type { HubServer, HubTool } from "./hubServer.ts"
import * as Render from "./renderResult.ts"
import { Listener, type Progress } from "./serverProgress.ts"

/** Returns the effects of a tool: `write` unless its server's annotations are trusted. */
export const effectsOf = ({ config }: HubServer, { tool }: HubTool): Effects => {
  if (!config.trustAnnotations) return "write"
  if (tool.annotations?.readOnlyHint === true) return "read"
  return tool.annotations?.idempotentHint === true ? "idempotent" : "write"
}

/** Calls a tool if its definition is still the accepted one. */
export const callTool = Effect.fnUntraced(function* (
  server: HubServer,
  tool: HubTool,
  input: { readonly [key: string]: unknown },
  asked: HubHost.Asked,
  onProgress?: (progress: Progress) => Effect.Effect<void>
) {
  const result = yield* server
    .request((connection) =>
      connection.callTool(tool.tool.name, wellFormed(input), {
        repeatable: effectsOf(server, tool) !== "write",
        accepts: (now) => Definition.textOf(now) === tool.text,
        host: HubHost.make(server.config, server.attendant, asked),
        run: asked.runId
      })
    )
    .pipe(Effect.provideService(Listener, onProgress))
  const page = Definition.pageOf(tool.tool)
  const { content, isError, structuredContent } = result
  const answer = Render.render(page === undefined ? result : { content, isError })
  if (page === undefined || answer.isError) return yield* fit(server, answer)
  const structured = plain(structuredContent ?? null)
  const shown = Content.uiResource(page, {
    // The media type of MCP Apps.
    mimeType: "text/html;profile=mcp-app",
    ...(isJsonObject(structured) ? { structuredContent: structured } : {})
  })
  return yield* fit(server, { ...answer, content: [...answer.content, shown] })
})

/** Returns arguments without halves of surrogate pairs, which strict readers of JSON refuse. */
const wellFormed = (input: { readonly [key: string]: unknown }): { readonly [key: string]: unknown } => {
  const written = JSON.stringify(input)
  const sound = wellFormedJson(written)
  return sound === written ? input : jsonObject(JSON.parse(sound))
}

export const readResource = (server: HubServer, uri: string): Effect.Effect<Answer, McpError> =>
  Effect.flatMap(readFrom(server, uri), (result) => fit(server, Render.resource(result)))

const readFrom = (server: HubServer, uri: string) => server.request((connection) => connection.readResource(uri))

export const readPage = Effect.fnUntraced(function* (server: HubServer, uri: string): Effect.fn.Return<Page, McpError> {
  const [page] = (yield* readFrom(server, uri)).contents
  const mimeType = page?.mimeType ?? ""
  if (!Definition.isPage(uri) || page?.uri !== uri || !("text" in page) || !mimeType.startsWith("text/html")) {
    const detail = `MCP server '${server.name}' has no page ${uri}`
    return yield* new McpError({ server: server.name, reason: "not_found", detail })
  }
  return { uri, mimeType, html: page.text, meta: jsonObject(plain(page._meta ?? {})) }
})

/** Gets a prompt. Arguments that are not text are sent as JSON. */
export const getPrompt = (
  server: HubServer,
  name: string,
  input: { readonly [key: string]: unknown }
): Effect.Effect<Answer, McpError> => {
  const texts = Object.fromEntries(
    Object.entries(input).map(([key, value]) => [key, typeof value === "string" ? value : JSON.stringify(plain(value))])
  )
  const got = server.request((connection) => connection.getPrompt(name, texts))
  return Effect.flatMap(got, (result) => fit(server, Render.prompt(result)))
}

/** Returns the contents of an answer. Fails with its text and its media if the server marks it as an error. */
export const contentOf =
  (server: string) =>
  ({ content, isError }: Answer): Effect.Effect<ReadonlyArray<Content.Content>, McpError> => {
    if (!isError) return Effect.succeed(content)
    const texts = content.map((part) => {
      if (part.type === "error") return part.message
      return Content.isMedia(part) ? "" : Content.toText(part)
    })
    const detail = texts.filter((text) => text !== "").join("\n") || "the tool failed without a message"
    const error = new McpError({ server, reason: "remote", detail })
    const media = content.filter(Content.isMedia)
    // The kernel shows the media that a failure carries.
    return Effect.fail(media.length === 0 ? error : Object.assign(error, { content: media }))
  }

/** Adds the server to its pages, and shortens the text of an answer that is too long. */
const fit = Effect.fnUntraced(function* (server: HubServer, answer: Answer) {
  const { resultBytes } = yield* Limits
  // An answer without content becomes an empty text, not an empty list.
  const given = answer.content.length === 0 ? [Content.text("")] : answer.content
  const content = onLines(given).map((part) =>
    part.type === "ui_resource" ? Object.freeze({ ...part, server: server.name }) : part
  )
  const texts = content.filter((part) => !isCarried(part))
  const text = texts.map((part) => (part.type === "error" ? part.message : Content.toText(part))).join("\n")
  const start = cut(text, resultBytes)
  if (start === text) return { ...answer, content }
  const bytes = new TextEncoder().encode(text)
  const id = yield* keep(bytes)
  const where = id === undefined ? "" : `; the whole is kept as ${id}`
  const short = `[The answer has ${bytes.byteLength} bytes. This is its beginning${where}. Ask for a smaller part of it.]\n${start}`
  const shown = answer.isError ? Content.error("McpToolError", short) : Content.text(short)
  return { ...answer, content: [shown, ...content.filter(isCarried)] }
})

/** Ends every text before another text with a line break, since a kernel joins texts without a separator. */
const onLines = (content: ReadonlyArray<Content.Content>): ReadonlyArray<Content.Content> =>
  content.map((part, index) => {
    const next = content[index + 1]
    const isFollowed = next !== undefined && !Content.isMedia(next)
    return part.type === "text" && isFollowed && !part.text.endsWith("\n") ? Content.text(`${part.text}\n`) : part
  })

/** Returns true for media, which go to their store, and pages, which go to the user. */
const isCarried = (part: Content.Content): boolean => Content.isMedia(part) || part.type === "ui_resource"

/** Stores a text among the media of the run, if there is a run and space. */
const keep = Effect.fnUntraced(function* (bytes: Uint8Array) {
  const store = yield* Effect.serviceOption(MediaStore)
  if (Option.isNone(store)) return undefined
  const stored = yield* Effect.option(store.value.put(Media.fromBytes(bytes, "text/plain")))
  return Option.getOrUndefined(stored)?.id
})
