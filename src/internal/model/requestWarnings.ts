/**
 * Compares a request with what its vendor does with it: text it should have cached, options and media it drops. Each is
 * reported when it changes.
 */

import type { Generation } from "../../Generation.ts"
import type { ModelCall } from "../../Middleware.ts"
import type { ToolDefinition } from "../../Provider.ts"
import type { CacheForecast, DroppedOptions, RunEvent } from "../../RunEvent.ts"
import type { LeftOut } from "../../RunModel.ts"
import type { Usage } from "../../Usage.ts"
import * as PromptCache from "../prompt/promptCache.ts"
import type { Run } from "../run/run.ts"
import { promptLog } from "../state/state.ts"

/**
 * Returns the cache forecast of a prompt that is about to be sent, or undefined if none of it can be cached. An agent
 * with a provider of its own, such as a program, sends its prompt to no vendor.
 */
export const forecastCache = (
  run: Run,
  model: string,
  tools: ReadonlyArray<ToolDefinition>,
  now: number
): CacheForecast | undefined => {
  if (run.live.publish === undefined || run.agent.provider !== undefined) return undefined
  const prompt = { model, tools, system: run.state.system, messages: promptLog(run.state) }
  const { cache, lost, possible, tokens } = PromptCache.send(run.cache, prompt, now)
  run.cache = cache
  return possible > 0 ? { tokens, possible, lost: lost ?? null } : undefined
}

/** Returns what a vendor read if it is less than half of the expected tokens. Estimates are that rough. */
export const cacheMissed = (expected: number, usage: Usage | null): Response["cacheMissed"] =>
  expected === 0 || usage === null || usage.cachedTokens >= expected / 2
    ? undefined
    : { expected, read: usage.cachedTokens }

/** Notes and returns the media that a request left out, or undefined if they are those of the request before. */
export const noteLeftOut = (
  run: Run,
  media: ReadonlyArray<LeftOut> | undefined
): ReadonlyArray<LeftOut> | undefined => {
  const before = run.leftOut
  run.leftOut = media === undefined ? "" : JSON.stringify(media)
  return run.leftOut === before ? undefined : media
}

/** Notes and returns the options that a call drops, or undefined if they are those of the call before. */
export const noteDropped = (run: Run, { provider, request }: ModelCall): DroppedOptions | undefined => {
  const { generation, grammar, model } = request
  if (run.live.publish === undefined) return undefined
  // In the dialect of blocks a schema is one of several forms of a grammar.
  const isHeld = run.agent.dialect !== "tools" || grammar === undefined || provider.constrains?.(request) !== false
  const options = [
    ...(provider.takes === undefined ? [] : missing(generation, provider.takes(request))),
    ...(isHeld ? [] : ["output"])
  ]
  const before = run.dropped
  run.dropped = options.length === 0 ? "" : [provider.name, model.id, ...options].join(" ")
  return run.dropped === "" || run.dropped === before
    ? undefined
    : { provider: provider.name, model: model.id, options }
}

type Response = Extract<RunEvent, { readonly type: "llm_response" }>

/** Returns the names of options that are given but not supported. */
const missing = (given: Generation, taken: Generation): ReadonlyArray<string> => [
  ...missingOf(["temperature", "maxTokens", "topP", "stopSequences", "seed"], given, taken),
  ...missingOf(["budget", "effort"], given.thinking ?? {}, taken.thinking ?? {}).map((name) => `thinking.${name}`)
]

const missingOf = <Name extends string>(
  names: ReadonlyArray<Name>,
  given: { readonly [name in Name]?: unknown },
  taken: { readonly [name in Name]?: unknown }
): ReadonlyArray<string> =>
  names.filter((name) => (given[name] ?? undefined) !== undefined && (taken[name] ?? undefined) === undefined)
