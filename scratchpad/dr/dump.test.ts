import { it } from "@effect/vitest"
import { Effect } from "effect"
import { RunStore } from "kernai"
import { play, type Scenario } from "../../test/support/durable.ts"

const A = (id: string, name: string, x: number) => ({ id, name, input: { x } })
const tools = { A: { output: "a-out" }, B: { output: "b-out" }, C: { output: "c-out" } }
const one = [{ toolCalls: [A("call-a", "A", 1)] }, { text: "done" }]
const three = [{ toolCalls: [A("call-a", "A", 1), A("call-b", "B", 2), A("call-c", "C", 3)] }, { text: "done" }]
const plain = [{ text: "done" }]
const q = {
  events: ["?"],
  toolsRun: ["?"],
  hooks: ["?"],
  status: { type: "?", phase: "?", reason: "?", source: "?", metadata: {} },
  revision: -1,
  error: "?"
}
const st = (s: any, expect: any = q) => ({ ...s, expect })
const scen = (id: string, config: any, steps: any[]): Scenario =>
  ({
    id,
    title: id,
    config: { tools, ...config },
    steps: steps.map((s) => st(s)),
    final: {
      openTurn: { pending: ["?"], inFlight: ["?"], completed: ["?"] },
      toolInputs: [],
      toolExecutions: ["?"],
      modelCalls: -1,
      turnsCompleted: -1,
      context: { "?": 1 },
      journal: []
    }
  }) as any
const pause = (hook: string, more: any = {}) => [
  { hook, times: 1, decision: { control: { type: "pause", reason: "wait", metadata: { m: 1 } }, ...more } }
]
const finish = (hook: string) => [
  { hook, times: 1, decision: { control: { type: "finish", reason: "enough", metadata: { m: 1 } } } }
]
const hooksAll = [
  "onRunStarted",
  "onTurnStarted",
  "onTurnPrepared",
  "onModelStarted",
  "onModelCompleted",
  "onToolCallsStarted",
  "onToolCallStarted",
  "onToolCallCompleted",
  "onToolCallsCompleted",
  "onTurnCompleted",
  "onRunCompleted"
]
const groups: Record<string, Scenario[]> = {
  pause: hooksAll.map((h) =>
    scen("pause-" + h, { script: one, hooks: pause(h) }, [
      { do: "run" },
      { do: "resume", with: { context: { ok: 1 } } }
    ])
  ),
  finish: hooksAll.map((h) =>
    scen("finish-" + h, { script: one, hooks: finish(h) }, [{ do: "run" }, { do: "resume" }])
  ),
  throws: hooksAll.map((h) =>
    scen(
      "throw-" + h,
      { script: one, hooks: [{ hook: h, times: 1, decision: { throw: "boom " + h, context: { t: 1 } } }] },
      [{ do: "run" }, { do: "resume" }]
    )
  ),
  crashhook: hooksAll.map((h) =>
    scen("crash-" + h, { script: one }, [{ do: "run", crash: { inHook: h } }, { do: "resume" }])
  ),
  misc: [
    scen("empty-batch", { script: three, hooks: [{ hook: "onToolCallsStarted", decision: { value: { keep: [] } } }] }, [
      { do: "run" }
    ]),
    scen(
      "keep",
      { script: three, hooks: [{ hook: "onToolCallsStarted", decision: { value: { keep: ["call-c", "call-a"] } } }] },
      [{ do: "run" }]
    ),
    scen(
      "merge",
      { script: one, hooks: [{ hook: "onToolCallsStarted", decision: { value: { mergeInput: { y: 2 } } } }] },
      [{ do: "run" }]
    ),
    scen(
      "wrap-pause",
      {
        script: three,
        hooks: [
          { hook: "onToolCallStarted", match: { toolName: "A" }, decision: { value: { wrapCommand: "sudo" } } },
          {
            hook: "onToolCallStarted",
            match: { toolName: "B" },
            times: 1,
            decision: { control: { type: "pause", reason: "w" } }
          }
        ]
      },
      [{ do: "run" }, { do: "resume" }]
    ),
    scen("dup", { script: [{ toolCalls: [A("x", "A", 1), A("x", "B", 2), A("x", "C", 3)] }, { text: "done" }] }, [
      { do: "run" }
    ]),
    scen("unknown", { script: [{ toolCalls: [A("x", "Z", 1)] }, { text: "done" }] }, [{ do: "run" }]),
    scen("max", { script: one.slice(0, 1), maxTurns: 2 }, [{ do: "run" }, { do: "resume" }]),
    scen("max-final", { script: one, maxTurns: 2 }, [{ do: "run" }]),
    scen(
      "max-continue",
      { script: plain, maxTurns: 2, hooks: [{ hook: "onTurnCompleted", decision: { control: { type: "continue" } } }] },
      [{ do: "run" }]
    ),
    scen("info", { script: [{ text: "think", outcome: "informational" }, { text: "done" }] }, [{ do: "run" }]),
    scen("model-error", { script: [{ error: "overloaded" }, { text: "done" }] }, [{ do: "run" }, { do: "resume" }]),
    scen("model-error-rewind", { script: [{ error: "overloaded" }, { text: "done" }] }, [
      { do: "run" },
      { do: "resume", with: { rewind: true, context: { more: 1 } } }
    ]),
    scen("rewind-bad", { script: one, hooks: pause("onModelCompleted") }, [
      { do: "run" },
      { do: "resume", with: { rewind: true } },
      { do: "resume" }
    ]),
    scen("rewind-prepared", { script: one }, [
      { do: "run", crash: { afterRevision: 3 } },
      { do: "resume", with: { rewind: true } }
    ]),
    scen("resume-completed", { script: plain }, [
      { do: "run" },
      { do: "resume", with: { context: { x: 1 } } },
      { do: "resume", with: { rewind: true } }
    ]),
    scen(
      "approve-missing",
      { script: three, policy: { A: { decision: "confirm", reason: "r1" }, B: { decision: "confirm", reason: "r2" } } },
      [
        { do: "run" },
        { do: "resume", with: { approvals: [{ toolCallId: "call-a", approved: true }] } },
        { do: "resume", with: { approvals: [{ toolCallId: "call-a", approved: false }] } },
        { do: "resume", with: { approvals: [{ toolCallId: "call-b", approved: true, input: { x: 9 } }] } }
      ]
    ),
    scen("approve-unknown", { script: three, policy: { A: { decision: "confirm", reason: "r1" } } }, [
      { do: "run" },
      { do: "resume", with: { approvals: [{ toolCallId: "zzz", approved: true }] } },
      { do: "resume" },
      { do: "resume", with: { approvals: [{ toolCallId: "call-a", approved: true }] } }
    ]),
    scen("deny-policy", { script: three, policy: { B: { decision: "deny", reason: "never" } } }, [{ do: "run" }]),
    scen("inflight", { script: three }, [
      { do: "run", crash: { duringTool: "call-b" } },
      { do: "resume" },
      { do: "resume", with: { replay: { "call-b": "fail" } } },
      { do: "resume", with: { replay: { "call-b": { resolve: { output: "known" } } } } }
    ]),
    scen("inflight-resolve-error", { script: three }, [
      { do: "run", crash: { duringTool: "call-b" } },
      { do: "resume", with: { replay: { "call-b": { resolve: { error: "it broke" } } } } }
    ]),
    scen("conc", { script: three, toolConcurrency: 2 }, [{ do: "run" }]),
    scen("conc-crash", { script: three, toolConcurrency: 2 }, [
      { do: "run", crash: { duringTool: "call-a" } },
      { do: "resume" },
      { do: "resume", with: { replay: { "call-a": "retry", "call-b": "retry" } } }
    ]),
    scen("int-model", { script: one }, [{ do: "run", interrupt: "model" }, { do: "resume" }]),
    scen("int-tool", { script: one }, [
      { do: "run", interrupt: "tool:call-a" },
      { do: "resume" },
      { do: "resume", with: { replay: { "call-a": "retry" } } }
    ]),
    scen("int-tool-ret", { script: one }, [{ do: "run", interrupt: "tool_returned:call-a" }, { do: "resume" }]),
    scen("crash-model", { script: one }, [{ do: "run", crash: { duringModel: true } }, { do: "resume" }]),
    scen(
      "ctx",
      {
        script: one,
        context: { a: 1 },
        hooks: [
          { hook: "onToolCallCompleted", times: 1, decision: { context: { c: 1 } } },
          { hook: "onTurnCompleted", times: 1, decision: { context: { d: 1 } } }
        ]
      },
      [
        { do: "run", crash: { inHook: "onToolCallsCompleted" } },
        { do: "resume", with: { context: { r: 1 } } }
      ]
    ),
    scen(
      "finish-crash",
      {
        script: one,
        hooks: [{ hook: "onToolCallCompleted", decision: { control: { type: "finish", reason: "enough" } } }]
      },
      [{ do: "run", crash: { inHook: "onToolCallCompleted" } }, { do: "resume" }]
    ),
    scen(
      "finish-pause",
      {
        script: one,
        hooks: [
          { hook: "onRunCompleted", times: 1, decision: { control: { type: "pause", reason: "hold" } } },
          ...finish("onToolCallCompleted")
        ]
      },
      [{ do: "run" }, { do: "resume" }]
    ),
    scen(
      "runcompleted-finish-ignored",
      {
        script: plain,
        hooks: [{ hook: "onRunCompleted", decision: { control: { type: "finish", reason: "other" } } }]
      },
      [{ do: "run" }]
    ),
    scen(
      "runcompleted-throw",
      { script: plain, hooks: [{ hook: "onRunCompleted", times: 1, decision: { throw: "x" } }] },
      [{ do: "run" }, { do: "resume" }]
    ),
    scen("zombie", { script: one }, [{ do: "zombie", tool: "call-a" }]),
    scen("race0", { script: one }, [{ do: "run", crash: { afterRevision: 12 } }, { do: "race" }]),
    scen("pause-settle-crash", { script: one, hooks: pause("onModelCompleted") }, [
      { do: "run", crash: { afterRevision: 6 } },
      { do: "resume" }
    ]),
    scen(
      "skip-all",
      { script: three, hooks: [{ hook: "onToolCallStarted", decision: { value: { type: "skip", output: "no" } } }] },
      [{ do: "run" }]
    )
  ]
}
for (const [name, list] of Object.entries(groups))
  for (const s of list) {
    if (process.env.ONLY && !s.id.includes(process.env.ONLY)) continue
    it.live(s.id, () =>
      Effect.gen(function* () {
        const d = yield* play(s)
        const lines = d.map((x) => `  ${x.where.replace(s.id, "").replace(" step ", "#")}: ${JSON.stringify(x.actual)}`)
        console.log(`=== ${s.id}\n${lines.join("\n")}`)
      }).pipe(Effect.provide(RunStore.layerMemory))
    )
  }
