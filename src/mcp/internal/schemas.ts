/**
 * Tools whose schemas point outside themselves are not offered: kernai fetches
 * nothing to understand a tool (S-18).
 */

import type * as McpSchema from "effect/ai/McpSchema"
import * as Effect from "effect/Effect"
import { isRecord } from "../../internal/base/json.ts"
import { some } from "./nameList.ts"

/** The tools that explain themselves; the others are named in the log. */
export const usableTools = Effect.fnUntraced(function* (server: string, tools: ReadonlyArray<McpSchema.Tool>) {
  const usable = new Set(
    tools.filter((tool) => isSelfContained(tool.inputSchema) && isSelfContained(tool.outputSchema))
  )
  if (usable.size < tools.length) {
    const names = some(tools.filter((tool) => !usable.has(tool)).map((tool) => tool.name))
    yield* Effect.logWarning(
      `MCP server '${server}' has tools that are left out (${names}): their schemas refer to other documents`
    )
  }
  return [...usable]
})

/** Does a JSON Schema refer only to itself? Not when it is too large to tell. */
const isSelfContained = (schema: unknown): boolean => {
  const waiting = [schema]
  for (let seen = 0; waiting.length > 0; seen++) {
    if (seen > maxNodes) return false
    const node = waiting.pop()
    if (Array.isArray(node)) for (const item of node) waiting.push(item)
    if (!isRecord(node)) continue
    for (const [key, value] of Object.entries(node)) {
      if (reference.has(key) && typeof value === "string" && !value.startsWith("#")) return false
      if (!data.has(key)) waiting.push(value)
    }
  }
  return true
}

const maxNodes = 100_000

const reference: ReadonlySet<string> = new Set(["$ref", "$dynamicRef", "$recursiveRef"])

// What stands here is an example of a value, not a schema.
const data: ReadonlySet<string> = new Set(["const", "enum", "default", "examples"])
