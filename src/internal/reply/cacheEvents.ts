/**
 * Reports what a vendor should read of a prompt from its cache, and where it did not.
 */

import type { ToolDefinition } from "../../Provider.ts"
import type { Usage } from "../../Usage.ts"
import * as PromptCache from "../prompt/promptCache.ts"
import { promptLog } from "../state/state.ts"
import { emit } from "../run/publish.ts"
import type { Run } from "../run/run.ts"

/** Emits the forecast of a prompt that is about to be sent, and returns the tokens it expects. */
export const forecastCache = (run: Run, model: string, tools: ReadonlyArray<ToolDefinition>, now: number): number => {
  if (run.live.publish === undefined) return 0
  const prompt = { model, tools, system: run.state.system, messages: promptLog(run.state) }
  const { cache, lost, possible, tokens } = PromptCache.send(run.cache, prompt, now)
  run.cache = cache
  if (possible > 0) emit(run, { type: "cache_forecast", tokens, possible, lost: lost ?? null })
  return tokens
}

/** Emits an event if a vendor read much less than was expected. Estimates may be wrong by half. */
export const compareCache = (run: Run, expected: number, usage: Usage | null): void => {
  if (expected === 0 || usage === null || usage.cachedTokens >= expected / 2) return
  emit(run, { type: "cache_missed", expected, read: usage.cachedTokens })
}
