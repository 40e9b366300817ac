/**
 * Assembles the JSON text of a request.
 *
 * Most of a request is its messages, which are already kept as JSON text. Only the few fields around them are written
 * for each call.
 */

import { isJsonObject, type Json, type JsonObject } from "../../kit/json.ts"
import { soundJsonText } from "../../kit/soundText.ts"
import type { Request, ToolDefinition } from "../../Provider.ts"
import { isFields } from "./readFields.ts"

/** JSON fields, some of which may be absent. */
export type Settings = { readonly [key: string]: Json | undefined }

/** Returns the vendor's own options of a request, under its name in `extra`. */
export const extras = (request: Request, provider: string): JsonObject => {
  const own = request.generation.extra?.[provider]
  return own !== undefined && isFields(own) ? own : {}
}

/**
 * Merges the vendor's own options over the settings in the same field of a request, at any depth. Returns undefined if
 * none is set.
 */
export const laidOver = (ours: Settings, own: Json | undefined): Json | undefined => {
  if (own !== undefined && !isJsonObject(own)) return own
  const laid: { [key: string]: Json | undefined } = { ...ours, ...own }
  for (const [key, value] of Object.entries(ours)) if (isJsonObject(value)) laid[key] = laidOver(value, own?.[key])
  const given = Object.entries(laid).filter((entry): entry is [string, Json] => entry[1] !== undefined)
  return given.length === 0 ? undefined : Object.fromEntries(given)
}

/**
 * Returns the tools of a request: first those that run here, encoded by the format, then those that the vendor runs.
 */
export const toolsOf = (
  { tools }: Request,
  provider: string,
  write: (tool: ToolDefinition) => JsonObject
): ReadonlyArray<JsonObject> | undefined => {
  const written = [...runHere(tools).map(write), ...hostedOf(tools, provider)]
  return written.length === 0 ? undefined : written
}

export const runHere = (tools: Request["tools"]): Request["tools"] => tools.filter(({ hosted }) => hosted === undefined)

/** Returns the definitions of the tools that a vendor runs itself. */
export const hostedOf = (tools: Request["tools"], provider: string): ReadonlyArray<JsonObject> =>
  tools.flatMap(({ hosted }) => {
    const own = hosted?.[provider]
    return own === undefined ? [] : [own]
  })

/** Returns the tools of a request as functions of Chat Completions. */
export const functions = (request: Request, provider: string): ReadonlyArray<JsonObject> | undefined =>
  toolsOf(request, provider, ({ description, inputSchema, name }) => ({
    type: "function",
    function: { name, description, parameters: inputSchema }
  }))

/** Returns true for OpenAI's reasoning models, which accept no sampling options. */
export const isReasoner = (model: string): boolean => /^(o\d|gpt-[5-9])/.test(model) && !model.includes("chat")

/**
 * Encodes a JSON object of the present `settings` and a list whose items are JSON text. The items are sound already.
 */
export const assemble = (settings: Settings, listKey: string, items: ReadonlyArray<string>): string => {
  const head = soundJsonText(JSON.stringify(settings))
  return `${head.slice(0, -1)}${head === "{}" ? "" : ","}${JSON.stringify(listKey)}:[${items.join(",")}]}`
}

/**
 * Returns an address below a base URL. A version or slash at the end of the base is not repeated; its query is kept.
 */
export const endpoint = (baseUrl: string, version: string, path: string, query?: string): string => {
  const [base = "", own] = baseUrl.split("?", 2)
  const root = base.replace(/\/+$/, "")
  const versioned = root.endsWith(version) ? root : root + version
  const queries = [own, query].filter((query) => query !== undefined && query !== "")
  return versioned + path + (queries.length === 0 ? "" : `?${queries.join("&")}`)
}
