/** What a scenario of durable-run.json may say, and what a played one saw. */
import type { RunState } from "kernai"
import { Schema } from "effect"

type Json = Schema.Json

export type JsonObject = { readonly [key: string]: Json }

interface Tool {
  readonly output?: Json
  readonly error?: string
  readonly idempotent?: boolean
  readonly middlewareThrows?: string
}

interface ScriptReply {
  readonly text?: string
  readonly toolCalls?: ReadonlyArray<{ readonly id: string; readonly name: string; readonly input: JsonObject }>
  readonly error?: string
  readonly outcome?: string
}

export interface HookEntry {
  readonly hook: string
  readonly match?: {
    readonly toolName?: string
    readonly toolCallId?: string
    readonly turn?: number
    readonly contextLacks?: string
    readonly contextHas?: string
  }
  readonly times?: number
  readonly decision: {
    readonly context?: JsonObject
    readonly control?: RunState.Stop | { readonly type: "continue" }
    readonly throw?: string
    readonly value?: {
      readonly type?: string
      readonly error?: string
      readonly output?: Json
      readonly keep?: ReadonlyArray<string>
      readonly mergeInput?: JsonObject
      readonly wrapCommand?: string
    }
  }
}

export interface Expectation {
  readonly events?: ReadonlyArray<string>
  readonly toolsRun?: ReadonlyArray<string>
  readonly hooks?: ReadonlyArray<string>
  readonly status?: JsonObject
  readonly revision?: number
  readonly error?: string
  readonly errorFields?: JsonObject
  readonly second?: Expectation
}

export interface Step {
  readonly do: "run" | "resume" | "race" | "zombie"
  readonly tool?: string
  readonly crash?: {
    readonly afterRevision?: number
    readonly duringModel?: boolean
    readonly duringTool?: string
    readonly inHook?: string
  }
  readonly interrupt?: string
  readonly with?: {
    readonly context?: JsonObject
    readonly replay?: { readonly [id: string]: "retry" | "fail" | { readonly resolve: JsonObject } }
    readonly approvals?: ReadonlyArray<Omit<RunState.Answer, "callId"> & { readonly toolCallId: string }>
    readonly rewind?: boolean
  }
  readonly expect: Expectation
}

export interface Scenario {
  readonly id: string
  readonly title: string
  readonly config: {
    readonly tools: { readonly [name: string]: Tool }
    readonly script: ReadonlyArray<ScriptReply>
    readonly hooks?: ReadonlyArray<HookEntry>
    readonly policy?: { readonly [tool: string]: { readonly decision: string; readonly reason?: string } }
    readonly context?: JsonObject
    readonly maxTurns?: number
    readonly toolConcurrency?: number
  }
  readonly steps: ReadonlyArray<Step>
  readonly final: JsonObject & { readonly journal?: ReadonlyArray<readonly [number, string, ReadonlyArray<string>]> }
}

/** A failure the script asks for. */
export class Scripted extends Schema.TaggedError<Scripted>()("Scripted", { message: Schema.String }) {}

/** What survives a process: the script, the counters, and what the test watches. */
export interface World {
  readonly scenario: Scenario
  position: number
  modelCalls: number
  readonly used: Map<HookEntry, number>
  readonly executions: Array<string>
  readonly inputs: Array<{ readonly toolCallId: string; readonly input: Json }>
}

/** What one process did. */
export interface Seen {
  readonly events: Array<string>
  readonly toolsRun: Array<string>
  readonly hooks: Array<string>
}

export interface Difference {
  readonly where: string
  readonly expected: unknown
  readonly actual: unknown
}

const known: { readonly [place: string]: ReadonlyArray<string> } = {
  scenario: ["id", "title", "rules", "config", "steps", "final", "note"],
  config: ["tools", "script", "hooks", "policy", "context", "maxTurns", "toolConcurrency"],
  tool: ["output", "error", "idempotent", "middlewareThrows"],
  reply: ["text", "toolCalls", "error", "outcome"],
  hook: ["hook", "match", "times", "decision"],
  match: ["toolName", "toolCallId", "turn", "contextLacks", "contextHas"],
  decision: ["context", "control", "throw", "value"],
  value: ["type", "error", "output", "keep", "mergeInput", "wrapCommand"],
  rule: ["decision", "reason"],
  step: ["do", "tool", "crash", "interrupt", "with", "expect"],
  crash: ["afterRevision", "duringModel", "duringTool", "inHook"],
  with: ["context", "replay", "approvals", "rewind"],
  expect: ["events", "toolsRun", "hooks", "status", "revision", "error", "errorFields", "second"],
  final: ["status", "toolExecutions", "toolInputs", "modelCalls", "turnsCompleted", "context", "openTurn", "journal"]
}

/** The first thing a scenario asks for that is not played here, if there is one. */
export const unknownIn = (scenario: Scenario): string | undefined => {
  const odd = (place: string, value: object | undefined) =>
    Object.keys(value ?? {})
      .filter((key) => known[place]?.includes(key) !== true)
      .map((key) => `${place}.${key}`)
  const { config, final, steps } = scenario
  // Of what is no run at all there is nothing more to look at.
  const [first] = odd("scenario", scenario)
  if (first !== undefined) return first
  return [
    ...odd("config", config),
    ...Object.values(config.tools).flatMap((tool) => odd("tool", tool)),
    ...config.script.flatMap((reply) => odd("reply", reply)),
    ...Object.values(config.policy ?? {}).flatMap((rule) => odd("rule", rule)),
    ...(config.hooks ?? []).flatMap((entry) => [
      ...odd("hook", entry),
      ...odd("match", entry.match),
      ...odd("decision", entry.decision),
      ...odd("value", entry.decision.value)
    ]),
    ...steps.flatMap((step) => [
      ...odd("step", step),
      ...odd("crash", step.crash),
      ...odd("with", step.with),
      ...odd("expect", step.expect),
      ...odd("expect", step.expect.second)
    ]),
    ...odd("final", final)
  ].at(0)
}

/**
 * A call by the name its script gave it. A script whose last reply repeats gives its ids again, turn by turn;
 * where an earlier turn used one, the run has an id of its own for the call.
 */
export const scripted = ({ scenario }: World, id: string): string => {
  const [, turn, index] = /:t(\d+)\.(\d+)$/.exec(id) ?? []
  const answers = scenario.config.script.filter(({ error }) => error === undefined)
  const reply = answers[Math.min(Number(turn), answers.length) - 1]
  return reply?.toolCalls?.[Number(index)]?.id ?? id
}

/** The same for all calls that a value names. */
export const inScript = (world: World, value: unknown): unknown => {
  if (typeof value === "string") return scripted(world, value)
  if (Array.isArray(value)) return value.map((item) => inScript(world, item))
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, inScript(world, item)]))
}

export const object = (value: Json): JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : {}
