import type { Config, Step } from "../support/scenarios.ts"
import { one, oneByOne, scenario, tests, three, completed, failed } from "../support/scenarios.ts"

const eventsOf = (rows: typeof oneByOne) => rows.flatMap(({ event }) => (event === undefined ? [] : [event]))
const hooksOf = (rows: typeof oneByOne) =>
  rows.flatMap(({ gate, settle }) => [gate, settle].filter((hook) => hook !== undefined))

/** What the journal holds when a crash after commit `k` was taken up: one resume, and model_restarted where it fell. */
const crashAfter = (k: number) => {
  const [before, after] = [oneByOne.slice(0, k), oneByOne.slice(k)]
  const last = before.at(-1)
  const inModel = last?.event === "model_started"
  const inTool = last?.event === undefined
  const crash: Step = {
    do: "run",
    crash: { afterRevision: k },
    expect: {
      events: eventsOf(before),
      // The hook of the last commit has not run yet.
      hooks: [...hooksOf(before.slice(0, -1)), ...(last?.gate === undefined ? [] : [last.gate])],
      toolsRun: k > 8 ? ["call-a"] : [],
      revision: k
    }
  }
  if (inTool) {
    return scenario(
      "between launch and result: no call is repeated without a decision",
      one,
      [
        crash,
        { do: "resume", expect: { events: ["run_failed"], toolsRun: [], error: "InFlightToolCalls", revision: 9 } }
      ],
      { status: failed("tool_call_started", "InFlightToolCalls"), toolExecutions: [] }
    )
  }
  const isOver = k === oneByOne.length
  const resume: Step = {
    do: "resume",
    expect: {
      events: isOver ? [] : [...(inModel ? ["model_restarted"] : []), ...eventsOf(after)],
      hooks: isOver
        ? []
        : [...(inModel ? ["onModelRestarted"] : last?.settle === undefined ? [] : [last.settle]), ...hooksOf(after)],
      toolsRun: k < 8 ? ["call-a"] : [],
      status: completed,
      revision: isOver ? 17 : 18 + (inModel ? 1 : 0)
    }
  }
  return scenario(`after commit ${k} (${last?.event ?? "launch"})`, one, [crash, resume], {
    status: completed,
    toolExecutions: ["call-a"],
    modelCalls: 2,
    turnsCompleted: 2
  })
}

tests(
  "a crash right after a commit loses nothing and repeats nothing (DR-7, DR-15)",
  oneByOne.map((_, index) => crashAfter(index + 1))
)

/** The hook that was cut off runs again, and so does the settle hook whose commit did not come to be recorded. */
const crashIn = (hook: string) => {
  const k = oneByOne.findIndex(({ gate, settle }) => gate === hook || settle === hook)
  const row = oneByOne[k]
  const isGate = row?.gate === hook
  const stored = oneByOne.slice(0, isGate ? k : k + 1)
  const last = stored.at(-1)
  const inModel = last?.event === "model_started"
  const rest = eventsOf(oneByOne.slice(stored.length))
  return scenario(
    `${hook}`,
    one,
    [
      { do: "run", crash: { inHook: hook }, expect: { events: eventsOf(stored), revision: stored.length } },
      {
        do: "resume",
        expect: {
          events: [...(inModel ? ["model_restarted"] : []), ...rest],
          hooks: [
            ...(inModel ? ["onModelRestarted"] : last?.settle === undefined ? [] : [last.settle]),
            ...hooksOf(oneByOne.slice(stored.length))
          ],
          status: completed
        }
      }
    ],
    { toolExecutions: ["call-a"], modelCalls: 2 }
  )
}

tests(
  "a crash inside a hook: it runs again (DR-8)",
  [...new Set(hooksOf(oneByOne))].map((hook) => crashIn(hook))
)

const idempotent = (name: string): Config => ({
  ...three,
  tools: { ...three.tools, [name]: { output: `${name} again`, idempotent: true } }
})

tests("a crash inside the model or a tool (DR-16, DR-17, DR-24)", [
  scenario(
    "in the model call: the same prompt is sent again, as another attempt",
    one,
    [
      { do: "run", crash: { duringModel: true }, expect: { revision: 4 } },
      {
        do: "resume",
        expect: { hooks: ["onModelRestarted", ...hooksOf(oneByOne.slice(4))], status: completed, revision: 19 }
      }
    ],
    { modelCalls: 3, toolExecutions: ["call-a"] }
  ),
  scenario(
    "in the model call, twice: each resume adds one attempt",
    one,
    [
      { do: "run", crash: { duringModel: true }, expect: { revision: 4 } },
      { do: "resume", crash: { duringModel: true }, expect: { events: ["model_restarted"], revision: 6 } },
      { do: "resume", expect: { status: completed, revision: 21 } }
    ],
    { modelCalls: 4 }
  ),
  scenario(
    "in the last of three tools, which writes: nothing is repeated",
    three,
    [
      { do: "run", crash: { duringTool: "call-c" }, expect: { toolsRun: ["call-a", "call-b", "call-c"] } },
      { do: "resume", expect: { events: ["run_failed"], toolsRun: [], error: "InFlightToolCalls" } }
    ],
    { toolExecutions: ["call-a", "call-b", "call-c"], openTurn: { pending: [], inFlight: ["call-c"] } }
  ),
  scenario(
    "in the first of three tools, which writes: the waiting ones do not run either",
    three,
    [
      { do: "run", crash: { duringTool: "call-a" }, expect: { toolsRun: ["call-a"] } },
      {
        do: "resume",
        expect: {
          events: ["run_failed"],
          toolsRun: [],
          hooks: ["onRunFailed"],
          error: "InFlightToolCalls",
          errorFields: { call_ids: ["call-a"] }
        }
      }
    ],
    { openTurn: { pending: ["call-b", "call-c"], inFlight: ["call-a"], completed: [] } }
  ),
  scenario(
    "in a repeatable tool, twice: it runs until it has a result, with one id and one input",
    idempotent("B"),
    [
      { do: "run", crash: { duringTool: "call-b" }, expect: { toolsRun: ["call-a", "call-b"] } },
      { do: "resume", crash: { duringTool: "call-b" }, expect: { toolsRun: ["call-b"] } },
      { do: "resume", expect: { toolsRun: ["call-b", "call-c"], status: completed } }
    ],
    {
      toolInputs: [
        { toolCallId: "call-a", input: { x: 1 } },
        { toolCallId: "call-b", input: { x: 2 } },
        { toolCallId: "call-b", input: { x: 2 } },
        { toolCallId: "call-b", input: { x: 2 } },
        { toolCallId: "call-c", input: { x: 3 } }
      ]
    }
  ),
  scenario(
    "with two concurrent tools: both are in flight, and both need a decision",
    { ...three, toolConcurrency: 2 },
    [
      { do: "run", crash: { duringTool: "call-a" }, expect: { revision: 11 } },
      {
        do: "resume",
        with: { replay: { "call-a": "retry" } },
        expect: { events: ["run_failed"], toolsRun: [], error: "InFlightToolCalls" }
      },
      {
        do: "resume",
        with: { replay: { "call-a": "retry", "call-b": "retry" } },
        expect: { toolsRun: ["call-a", "call-b", "call-c"], status: completed }
      }
    ],
    { turnsCompleted: 2 }
  )
])
