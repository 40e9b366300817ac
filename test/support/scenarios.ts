/**
 * Durable scenarios in few words: the base runs, what they commit, and how to play a list of them.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { RunStore } from "kernai"
import { play } from "./durable/play.ts"
import type { Scenario } from "./durable/script.ts"

export type Step = Scenario["steps"][number]
export type Config = Scenario["config"]

const tools = { A: { output: "a-out" }, B: { output: "b-out" }, C: { output: "c-out" } }
const call = (id: string, name: string, x: number) => ({ id, name, input: { x } })

export const done = { text: "done" }
export const callA = { toolCalls: [call("call-a", "A", 1)] }
export const callAll = { toolCalls: [call("call-a", "A", 1), call("call-b", "B", 2), call("call-c", "C", 3)] }

/** One tool, then the answer: 17 commits. */
export const one: Config = { tools, script: [callA, done] }
/** Three tools, then the answer: 23 commits. */
export const three: Config = { tools, script: [callAll, done] }
/** The answer at once: 7 commits. */
export const plain: Config = { tools, script: [done] }

// ---------------------------------------------------------------- what is told

export const asked = ["turn_started", "turn_prepared", "model_started", "model_completed"]
export const begun = ["run_started", ...asked]
export const reviewed = (...ids: ReadonlyArray<string>) => ids.map((id) => `tool_call_started:call-${id}`)
export const ran = (...ids: ReadonlyArray<string>) => ids.map((id) => `tool_call_completed:call-${id}`)
export const closed = ["tool_calls_completed", "turn_completed"]
export const answered = [...asked, "turn_completed", "run_completed"]

/** The hooks of a turn until its answer, and those of the last one. */
export const askingHooks = ["onTurnStarted", "onTurnPrepared", "onModelStarted", "onModelCompleted"]
export const answeringHooks = [...askingHooks, "onTurnCompleted", "onRunCompleted"]

/** The base run with one tool: what each commit tells, and the hook around it. */
export const oneByOne: ReadonlyArray<{
  readonly event: string | undefined
  readonly gate?: string
  readonly settle?: string
}> = [
  { event: "run_started", settle: "onRunStarted" },
  { event: "turn_started", settle: "onTurnStarted" },
  { event: "turn_prepared", gate: "onTurnPrepared" },
  { event: "model_started", settle: "onModelStarted" },
  { event: "model_completed", settle: "onModelCompleted" },
  { event: "tool_calls_started", gate: "onToolCallsStarted" },
  { event: "tool_call_started:call-a", gate: "onToolCallStarted:call-a" },
  { event: undefined },
  { event: "tool_call_completed:call-a", settle: "onToolCallCompleted:call-a" },
  { event: "tool_calls_completed", settle: "onToolCallsCompleted" },
  { event: "turn_completed", settle: "onTurnCompleted" },
  { event: "turn_started", settle: "onTurnStarted" },
  { event: "turn_prepared", gate: "onTurnPrepared" },
  { event: "model_started", settle: "onModelStarted" },
  { event: "model_completed", settle: "onModelCompleted" },
  { event: "turn_completed", settle: "onTurnCompleted" },
  { event: "run_completed", gate: "onRunCompleted" }
]

export const completed = { type: "completed", source: "model_done" }
export const byCaller = (reason: string) => ({ type: "completed", source: "caller", reason })
export const paused = (phase: string, reason = "wait") => ({ type: "paused", phase, reason })
export const failed = (phase: string, error?: string) => ({
  type: "failed",
  phase,
  ...(error === undefined ? {} : { error })
})

// ---------------------------------------------------------------- hooks

type Entry = NonNullable<Config["hooks"]>[number]

export const pauses = (hook: string, times = 1, match: NonNullable<Entry["match"]> = {}): Entry => ({
  hook,
  match,
  times,
  decision: { control: { type: "pause", reason: "wait" } }
})

export const finishes = (hook: string, match: NonNullable<Entry["match"]> = {}): Entry => ({
  hook,
  match,
  decision: { control: { type: "finish", reason: "enough" } }
})

export const throws = (hook: string): Entry => ({ hook, times: 1, decision: { throw: `${hook} broke` } })

// ---------------------------------------------------------------- playing

export const scenario = (
  title: string,
  config: Config,
  steps: ReadonlyArray<Step>,
  final: Scenario["final"] = {}
): Scenario => ({ id: title.replaceAll(/[^A-Za-z0-9]+/g, "-"), title, config, steps, final })

/** A test for each scenario, on the memory store. */
export const tests = (name: string, scenarios: ReadonlyArray<Scenario>) =>
  describe(name, () => {
    for (const scenario of scenarios) {
      it.live(scenario.title, () =>
        Effect.gen(function* () {
          assert.deepStrictEqual(yield* play(scenario), [])
        }).pipe(Effect.provide(RunStore.layerMemory))
      )
    }
  })
