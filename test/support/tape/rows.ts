/** Rows of the recorder, as the vectors write them. */
import { Plan } from "kernai"
import type { Json } from "../../../src/Content.ts"
import { isObject } from "./script.ts"
import { withoutHint, translate, documented, withoutIds, withoutDurations } from "./words.ts"

export type Row = readonly [number, number, string | null, string, Json]

/** Ruby records what happens to tasks at step 0 of their parent (W-28). */
const stepOf = (step: number, event: string): number => (event.startsWith("task_") ? 0 : step)

export const toldRow = ([at, depth, taskId, event, data]: Row): Row => {
  const step = stepOf(at, event)
  const bare = withoutDurations(data)
  if (event === "skill_error" && isObject(bare))
    return [step, depth, taskId, event, { ...bare, error: withoutHint(String(bare["error"])) }]
  if (event === "workflow_complete" && isObject(data) && Array.isArray(data["results"])) {
    return [
      step,
      depth,
      taskId,
      event,
      {
        results: Object.fromEntries(
          data["results"].flatMap((pair) => (Array.isArray(pair) ? [[String(pair[0]), pair[1] ?? null]] : []))
        )
      }
    ]
  }
  if (event === "builtin_result" && isObject(data))
    return [step, depth, taskId, event, { ...data, result: documented(data["result"] ?? null) }]
  if (event === "skill_result") return [step, depth, taskId, event, withoutIds(bare)]
  if (event === "blocks_parsed" && Array.isArray(bare)) return [step, depth, taskId, event, bare.map(unmarked)]
  return [step, depth, taskId, event, bare]
}

/** Ruby does not record which blocks have no effect (W-10). */
const unmarked = (block: Json): Json => {
  if (!isObject(block)) return block
  const { ignored: _, ...rest } = block
  return rest
}

/** Ruby records its plain-language plans as rejected (W-34). */
export const wantedRow = ([step, depth, taskId, event, data]: Row): ReadonlyArray<Row> => {
  if (event === "plan_rejected" && isObject(data) && typeof data["raw"] === "string" && Plan.isProse(data["raw"]))
    return []
  if (event === "skill_error" || event === "builtin_result") return [[step, depth, taskId, event, translate(data)]]
  if (event === "skill_result") return [[step, depth, taskId, event, withoutIds(data)]]
  return droppedRow([step, depth, taskId, event, data])
}

/** Of an answer, its tokens count. */
export const droppedRow = (row: Row): ReadonlyArray<Row> => {
  const [step, depth, taskId, event, data] = row
  if (event === "llm_response" && isObject(data)) {
    const { completion_tokens, prompt_tokens, total_tokens } = data
    return [
      [
        step,
        depth,
        taskId,
        event,
        {
          prompt_tokens: prompt_tokens ?? null,
          completion_tokens: completion_tokens ?? null,
          total_tokens: total_tokens ?? null
        }
      ]
    ]
  }
  return [row]
}
