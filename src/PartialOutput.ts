/**
 * The answer of a typed agent while it is being written, for display only.
 *
 * Partial answers are JSON that does not fit the schema yet: fields are missing, and strings are incomplete. The final
 * answer is decoded once, when it is complete.
 *
 * @since 0.1.0
 */

import * as Stream from "effect/Stream"
import type { DialectName } from "./Dialect.ts"
import { isJsonObject, type Json } from "./kit/json.ts"
import { PartialJson } from "./internal/words/partialJson.ts"
import type { RunEvent } from "./RunEvent.ts"
import type { AnySkill } from "./Skill.ts"

/**
 * Reads the events of a run and collects its answer so far.
 *
 * @category models
 * @since 0.1.0
 */
export interface PartialOutput {
  /** Reads an event. Returns the answer so far if it has grown. */
  readonly push: (event: RunEvent) => Json | undefined
}

/**
 * Creates a reader for one run. Answers of child runs are ignored.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (): PartialOutput => {
  let dialect: DialectName = "blocks"
  let json: PartialJson | undefined
  let isText = false
  const shown = (value: Json | undefined) => (isText && dialect === "blocks" ? outside(value) : value)
  return {
    push: (event) => {
      if (event.depth > 0) return undefined
      switch (event.type) {
        case "turn_prepared":
          dialect = event.dialect
          return undefined
        case "messages_sent":
          // With native calls the text is the answer. With blocks the text counts until the first block.
          json = new PartialJson()
          isText = true
          return undefined
        case "block_start":
          json = event.blockType === "final" ? new PartialJson() : undefined
          isText = false
          return undefined
        case "text_chunk":
          return isText ? shown(json?.push(event.text)) : undefined
        case "block_content":
          return json?.push(event.text)
        case "block_complete":
        case "llm_response":
          return shown(json?.end())
        default:
          return undefined
      }
    }
  }
}

/**
 * Emits the answer of a run each time it has grown.
 *
 * @example
 * Kernel.stream(agent, "Write a recipe").pipe(PartialOutput.fromEvents, Stream.runForEach(draw))
 *
 * @category streams
 * @since 0.1.0
 */
export const fromEvents = <Output, S extends AnySkill<unknown>, E, R>(
  events: Stream.Stream<RunEvent<Output, S>, E, R>
): Stream.Stream<Json, E, R> =>
  Stream.mapAccum(events, make, (output, event) => {
    const value = output.push(event)
    return [output, value === undefined ? [] : [value]]
  })

/**
 * Returns the answer in text outside blocks. A number or a word is not an answer, since a sentence may begin with it.
 * Of blocks written as JSON, only the final one counts.
 */
const outside = (value: Json | undefined): Json | undefined => {
  if (typeof value !== "object" || value === null) return undefined
  if (!isJsonObject(value)) return value
  const { blocks, ...rest } = value
  if (!Array.isArray(blocks) || Object.keys(rest).length > 0) return value
  const items: ReadonlyArray<Json> = blocks
  const isBlock = (item: Json) => isJsonObject(item) && Object.keys(item).every((key) => blockKeys.has(key))
  if (!items.every(isBlock)) return value
  return items.flatMap((item) =>
    isJsonObject(item) && item["type"] === "final" && item["content"] !== undefined ? [item["content"]] : []
  )[0]
}

const blockKeys: ReadonlySet<string> = new Set(["type", "name", "content"])
