import {
  answered,
  answeringHooks,
  asked,
  begun,
  byCaller,
  callA,
  closed,
  completed,
  done,
  failed,
  finishes,
  one,
  oneByOne,
  paused,
  pauses,
  plain,
  ran,
  reviewed,
  scenario,
  tests,
  three,
  throws
} from "../support/scenarios.ts"

const eventsOf = (rows: typeof oneByOne) => rows.flatMap(({ event }) => (event === undefined ? [] : [event]))
const hooksOf = (rows: typeof oneByOne) =>
  rows.flatMap(({ gate, settle }) => [gate, settle].filter((hook) => hook !== undefined))
const nameOf = (hook: string) => hook.replace(":call-a", "")

/** Where a hook stands in the base run: what is stored when it is asked, and the phase it sees. */
const placeOf = (hook: string) => {
  const index = oneByOne.findIndex(({ gate, settle }) => gate === hook || settle === hook)
  const isGate = oneByOne[index]?.gate === hook
  const stored = oneByOne.slice(0, isGate ? index : index + 1)
  const phase = eventsOf(stored).at(-1)?.replace(":call-a", "") ?? ""
  return { isGate, stored, phase, rest: oneByOne.slice(stored.length), toolsRun: stored.length > 8 ? ["call-a"] : [] }
}

const hooks = [...new Set(hooksOf(oneByOne))]

const pause = (hook: string) => {
  const { isGate, phase, rest, stored, toolsRun } = placeOf(hook)
  const inModel = phase === "model_started"
  // The end that onRunCompleted paused is not asked about again.
  const hooks = hook === "onRunCompleted" ? [] : hooksOf(rest)
  return scenario(
    `${hook}: ${isGate ? "its step is not made, and it is asked again" : "its phase and result stay, and it is not asked again"}`,
    { ...one, context: { a: 1 }, hooks: [pauses(nameOf(hook))] },
    [
      {
        do: "run",
        expect: {
          events: [...eventsOf(stored), "paused"],
          toolsRun,
          status: paused(phase),
          revision: stored.length + 1
        }
      },
      {
        do: "resume",
        with: { context: { b: 2 } },
        expect: {
          events: [...(inModel ? ["model_restarted"] : []), ...eventsOf(rest)],
          hooks: [...(inModel ? ["onModelRestarted"] : []), ...hooks],
          toolsRun: toolsRun.length === 0 ? ["call-a"] : [],
          status: completed
        }
      }
    ],
    { toolExecutions: ["call-a"], context: { a: 1, b: 2 }, modelCalls: 2 }
  )
}

tests("a pause (DR-9)", [
  ...hooks.map((hook) => pause(hook)),
  ...["onTurnStarted", "onToolCallCompleted:call-a", "onRunCompleted"].map((hook) =>
    scenario(
      `${hook}: needs no reason (DR-3)`,
      { ...one, hooks: [{ hook: nameOf(hook), times: 1, decision: { control: { type: "pause" } } }] },
      [
        { do: "run", expect: { status: { type: "paused", phase: placeOf(hook).phase } } },
        { do: "resume", expect: { status: completed } }
      ],
      { toolExecutions: ["call-a"] }
    )
  )
])

const finish = (hook: string) => {
  const { phase, stored, toolsRun } = placeOf(hook)
  return scenario(
    `${hook}: what is not launched never runs, and a later resume changes nothing`,
    { ...one, hooks: [finishes(nameOf(hook))] },
    [
      {
        do: "run",
        expect: {
          events: [...eventsOf(stored), "run_completed"],
          hooks: [
            ...hooksOf(stored.slice(0, -1)),
            ...hooksOf(stored.slice(-1)).filter((name) => name !== hook),
            hook,
            "onRunCompleted"
          ],
          toolsRun,
          status: { ...byCaller("enough"), phase },
          revision: stored.length + 1
        }
      },
      { do: "resume", with: { context: { late: true } }, expect: { events: [], toolsRun: [], hooks: [] } }
    ],
    { toolExecutions: toolsRun, context: {}, turnsCompleted: stored.length > 10 ? 1 : 0 }
  )
}

tests("a finish (DR-10)", [
  ...hooks.filter((hook) => hook !== "onRunCompleted").map((hook) => finish(hook)),
  scenario(
    "onRunCompleted can neither finish a finishing run again nor continue it",
    {
      ...plain,
      hooks: [{ hook: "onRunCompleted", decision: { control: { type: "finish", reason: "another" } } }]
    },
    [{ do: "run", expect: { status: completed, revision: 7 } }]
  ),
  scenario(
    "onRunCompleted may pause a finish; the resume completes with the given reason and no further call",
    { ...one, hooks: [finishes("onToolCallCompleted"), pauses("onRunCompleted")] },
    [
      { do: "run", expect: { status: paused("tool_call_completed"), revision: 10 } },
      {
        do: "resume",
        expect: { events: ["run_completed"], hooks: [], status: byCaller("enough"), revision: 12, toolsRun: [] }
      }
    ]
  ),
  scenario(
    "a paused finish survives a crash of its resume",
    { ...one, hooks: [finishes("onTurnStarted"), pauses("onRunCompleted")] },
    [
      { do: "run", expect: { status: paused("turn_started"), revision: 3 } },
      { do: "resume", crash: { afterRevision: 4 }, expect: { revision: 4 } },
      { do: "resume", expect: { events: ["run_completed"], hooks: [], status: byCaller("enough"), revision: 6 } }
    ],
    {
      journal: [
        [1, "phase", ["run_started"]],
        [2, "phase", ["turn_started"]],
        [3, "pause", ["paused"]],
        [4, "resume", []],
        [5, "resume", []],
        [6, "phase", ["run_completed"]]
      ]
    }
  ),
  scenario(
    "a finish requested by a settle hook survives a crash: the hook runs again",
    { ...one, hooks: [finishes("onToolCallCompleted")] },
    [
      { do: "run", crash: { inHook: "onToolCallCompleted" }, expect: { revision: 9 } },
      {
        do: "resume",
        expect: { events: ["run_completed"], hooks: ["onToolCallCompleted:call-a", "onRunCompleted"] }
      }
    ],
    { status: byCaller("enough"), toolExecutions: ["call-a"] }
  ),
  scenario(
    "a finish after the first of three calls skips the others",
    { ...three, hooks: [finishes("onToolCallCompleted", { toolName: "A" })] },
    [
      {
        do: "run",
        expect: {
          events: [...begun, "tool_calls_started", ...reviewed("a", "b", "c"), ...ran("a"), "run_completed"],
          toolsRun: ["call-a"],
          status: byCaller("enough")
        }
      }
    ],
    { openTurn: { pending: ["call-b", "call-c"], inFlight: [], completed: ["call-a"] } }
  ),
  scenario(
    "a finish while another call runs waits for it",
    { ...three, toolConcurrency: 2, hooks: [finishes("onToolCallCompleted", { toolName: "A" })] },
    [
      {
        do: "run",
        expect: {
          events: [...begun, "tool_calls_started", ...reviewed("a", "b", "c"), ...ran("a", "b"), "run_completed"],
          toolsRun: ["call-a", "call-b"],
          status: byCaller("enough")
        }
      }
    ],
    { openTurn: { pending: ["call-c"], inFlight: [], completed: ["call-a", "call-b"] } }
  ),
  scenario(
    "a finish that waits for another call survives a crash",
    { ...three, toolConcurrency: 2, hooks: [finishes("onToolCallCompleted", { toolName: "A" })] },
    [
      { do: "run", crash: { inHook: "onToolCallCompleted:call-b" }, expect: { revision: 13 } },
      {
        do: "resume",
        expect: {
          events: ["run_completed"],
          hooks: ["onToolCallCompleted:call-b", "onRunCompleted"],
          toolsRun: [],
          status: byCaller("enough")
        }
      }
    ],
    { toolExecutions: ["call-a", "call-b"], openTurn: { pending: ["call-c"] } }
  ),
  scenario(
    "a finish requested again after a crash waits for calls in flight, and starts no other",
    {
      ...three,
      tools: {
        A: { output: "a-out", idempotent: true },
        C: { output: "c-out", idempotent: true },
        B: { output: "b-out", idempotent: true }
      },
      toolConcurrency: 2,
      hooks: [finishes("onToolCallCompleted", { toolName: "A" })]
    },
    [
      { do: "run", crash: { inHook: "onToolCallCompleted:call-a" }, expect: { revision: 12 } },
      {
        do: "resume",
        expect: {
          events: [...ran("b"), "run_completed"],
          hooks: ["onToolCallCompleted:call-a", "onToolCallCompleted:call-b", "onRunCompleted"],
          toolsRun: ["call-b"],
          status: byCaller("enough")
        }
      }
    ],
    { openTurn: { pending: ["call-c"], inFlight: [], completed: ["call-a", "call-b"] } }
  ),
  scenario(
    "a finish that was stored while other calls were in flight waits for them after a crash, whatever their hooks request",
    {
      ...three,
      tools: {
        A: { output: "a-out", idempotent: true },
        B: { output: "b-out", idempotent: true },
        C: { output: "c-out", idempotent: true }
      },
      toolConcurrency: 3,
      hooks: [finishes("onToolCallCompleted", { toolName: "A" }), pauses("onToolCallCompleted", 1, { toolName: "C" })]
    },
    [
      { do: "run", crash: { inHook: "onToolCallCompleted:call-b" }, expect: { revision: 14 } },
      {
        do: "resume",
        expect: {
          events: [...ran("c"), "run_completed"],
          hooks: ["onToolCallCompleted:call-b", "onToolCallCompleted:call-c", "onRunCompleted"],
          toolsRun: ["call-c"],
          status: byCaller("enough")
        }
      }
    ],
    { openTurn: { pending: [], inFlight: [], completed: ["call-a", "call-b", "call-c"] } }
  ),
  scenario(
    "a pause that waits for another call survives a crash, and the interrupted call continues after it",
    {
      ...three,
      tools: {
        A: { output: "a-out", idempotent: true },
        C: { output: "c-out", idempotent: true },
        B: { output: "b-out", idempotent: true }
      },
      toolConcurrency: 2,
      hooks: [pauses("onToolCallCompleted", 1, { toolName: "A" })]
    },
    [
      { do: "run", crash: { inHook: "onToolCallCompleted:call-b" }, expect: { revision: 13 } },
      { do: "resume", expect: { events: ["paused"], toolsRun: [], status: paused("tool_call_completed") } },
      { do: "resume", expect: { events: [...ran("c"), ...closed, ...answered], status: completed } }
    ],
    { toolExecutions: ["call-a", "call-b", "call-c"] }
  )
])

const forgetful = (hook: string) => {
  const { phase, toolsRun } = placeOf(hook)
  return scenario(
    `${hook}: what it finished is finished when the hook of the end fails, and nothing more is run`,
    { ...one, hooks: [finishes(nameOf(hook)), throws("onRunCompleted")] },
    [
      { do: "run", expect: { toolsRun, status: failed(phase, "onRunCompleted broke"), error: "RunFailed" } },
      {
        do: "resume",
        expect: {
          events: ["run_completed"],
          hooks: [...(hook === "onToolCallCompleted:call-a" ? [] : [hook]), "onRunCompleted"],
          toolsRun: [],
          status: byCaller("enough")
        }
      }
    ],
    { toolExecutions: toolsRun }
  )
}

tests("a finish whose end failed (DR-10, DR-18)", [
  // A model that is to be asked again is asked, whatever was said before it (DR-15).
  ...hooks.filter((hook) => hook !== "onRunCompleted" && hook !== "onModelStarted").map(forgetful),
  scenario(
    "one that the last of several calls requested happens, though it was never stored",
    {
      ...three,
      toolConcurrency: 3,
      hooks: [finishes("onToolCallCompleted", { toolName: "C" }), throws("onRunCompleted")]
    },
    [
      {
        do: "run",
        expect: { status: failed("tool_call_completed", "onRunCompleted broke"), error: "RunFailed" }
      },
      {
        do: "resume",
        expect: { events: ["run_completed"], hooks: ["onRunCompleted"], toolsRun: [], status: byCaller("enough") }
      }
    ]
  )
])

const broken = (hook: string) => {
  const { phase, rest, stored, toolsRun } = placeOf(hook)
  const inModel = phase === "model_started"
  return scenario(
    `${hook}: the run fails where it stands, and goes on from there`,
    { ...one, hooks: [throws(nameOf(hook))] },
    [
      {
        do: "run",
        expect: {
          events: [...eventsOf(stored), "run_failed"],
          toolsRun,
          status: failed(phase, `${nameOf(hook)} broke`),
          revision: stored.length + 1,
          error: "RunFailed"
        }
      },
      {
        do: "resume",
        expect: {
          events: [...(inModel ? ["model_restarted"] : []), ...eventsOf(rest)],
          hooks: [...(inModel ? ["onModelRestarted"] : []), ...hooksOf(rest)],
          status: completed
        }
      }
    ],
    { toolExecutions: ["call-a"] }
  )
}

tests("a hook that fails (DR-8, DR-18)", [
  ...hooks.map((hook) => broken(hook)),
  scenario(
    "onRunFailed is logged when it fails itself, and changes nothing but the context",
    {
      ...one,
      hooks: [
        throws("onTurnStarted"),
        { hook: "onRunFailed", times: 1, decision: { throw: "worse" } },
        { hook: "onRunFailed", decision: { context: { seen: true }, control: { type: "pause", reason: "no" } } },
        { hook: "onTurnPrepared", times: 1, decision: { throw: "again" } }
      ]
    },
    [
      { do: "run", expect: { status: failed("turn_started", "onTurnStarted broke"), error: "RunFailed" } },
      { do: "resume", expect: { status: failed("turn_started", "again"), error: "RunFailed" } },
      { do: "resume", expect: { status: completed } }
    ],
    { context: { seen: true } }
  )
])

tests("what a hook changes (DR-8)", [
  scenario(
    "a control beats a value, and the context is merged in any case",
    {
      ...one,
      hooks: [
        {
          hook: "onToolCallStarted",
          times: 1,
          decision: {
            context: { seen: 1 },
            control: { type: "pause", reason: "wait" },
            value: { type: "skip", output: "not run" }
          }
        }
      ]
    },
    [
      { do: "run", expect: { status: paused("tool_calls_started"), toolsRun: [] } },
      { do: "resume", expect: { toolsRun: ["call-a"], status: completed } }
    ],
    { context: { seen: 1 } }
  ),
  scenario(
    "the context of a settle hook is stored with the next commit, and merged with the context of a resume",
    {
      ...one,
      context: { a: 1 },
      hooks: [
        { hook: "onModelCompleted", times: 1, decision: { context: { a: 2, b: 2 } } },
        {
          hook: "onToolCallsStarted",
          times: 1,
          decision: { context: { b: 3 }, control: { type: "pause", reason: "wait" } }
        }
      ]
    },
    [
      { do: "run", expect: { status: paused("model_completed") } },
      { do: "resume", with: { context: { c: 4 } }, expect: { status: completed } }
    ],
    { context: { a: 2, b: 3, c: 4 } }
  ),
  scenario(
    "a change that was not stored is made again by the hook that runs again",
    { ...one, hooks: [{ hook: "onTurnStarted", match: { turn: 1 }, decision: { context: { turn: 1 } } }] },
    [
      { do: "run", crash: { inHook: "onTurnPrepared" }, expect: { revision: 2 } },
      { do: "resume", expect: { status: completed } }
    ],
    { context: { turn: 1 } }
  )
])

tests("the end (DR-20)", [
  scenario("a reply without calls ends the run", plain, [
    { do: "run", expect: { events: [...begun, "turn_completed", "run_completed"], status: completed, revision: 7 } }
  ]),
  scenario("an answer on the last allowed turn is accepted", { ...one, maxTurns: 2 }, [
    { do: "run", expect: { status: completed, revision: 17 } }
  ]),
  scenario(
    "calls on the last allowed turn run, and the run fails with the limit",
    { ...one, script: [callA, { toolCalls: [{ id: "call-b", name: "B", input: { x: 2 } }] }], maxTurns: 2 },
    [
      {
        do: "run",
        expect: {
          status: { type: "completed", source: "max_turns", metadata: { maxTurns: 2 } },
          error: "MaxStepsReached",
          errorFields: { limit: 2 },
          toolsRun: ["call-a", "call-b"]
        }
      },
      { do: "resume", expect: { events: [], error: "MaxStepsReached" } }
    ],
    { turnsCompleted: 2 }
  ),
  scenario(
    "a model that repeats its call ids sees them again, on every turn (R-24)",
    { ...one, script: [callA], maxTurns: 3 },
    [
      {
        do: "run",
        crash: { afterRevision: 17 },
        expect: { toolsRun: ["call-a"], status: { type: "running", phase: "tool_call_started" } }
      },
      {
        do: "resume",
        expect: {
          events: [
            ...ran("a"),
            ...closed,
            ...asked,
            "tool_calls_started",
            ...reviewed("a"),
            ...ran("a"),
            ...closed
          ].concat("run_completed"),
          toolsRun: ["call-a", "call-a"],
          status: { type: "completed", source: "max_turns", metadata: { maxTurns: 3 } },
          error: "MaxStepsReached"
        }
      }
    ],
    { toolExecutions: ["call-a", "call-a", "call-a"], modelCalls: 3, turnsCompleted: 3 }
  ),
  scenario(
    "continue on the last allowed turn ends at the limit",
    {
      ...plain,
      maxTurns: 1,
      hooks: [{ hook: "onTurnCompleted", decision: { control: { type: "continue" } } }]
    },
    [{ do: "run", expect: { status: { source: "max_turns" }, error: "MaxStepsReached" } }]
  ),
  scenario(
    "continue survives a crash: the hook runs again",
    {
      ...plain,
      hooks: [{ hook: "onTurnCompleted", match: { turn: 1 }, decision: { control: { type: "continue" } } }]
    },
    [
      { do: "run", crash: { inHook: "onTurnCompleted" }, expect: { revision: 6 } },
      {
        do: "resume",
        expect: {
          hooks: ["onTurnCompleted", ...answeringHooks],
          status: completed
        }
      }
    ],
    { turnsCompleted: 2, modelCalls: 2 }
  ),
  scenario(
    "a reply with only informative blocks is corrected, and the run continues",
    { ...plain, script: [{ text: "thinking", outcome: "informational" }, done] },
    [{ do: "run", expect: { events: [...begun, "turn_completed", ...answered], status: completed } }],
    { modelCalls: 2, turnsCompleted: 2 }
  ),
  scenario(
    "finish beats continue beats the model being done",
    {
      ...plain,
      hooks: [
        { hook: "onTurnCompleted", match: { turn: 1 }, decision: { control: { type: "continue" } } },
        { hook: "onTurnCompleted", match: { turn: 2 }, decision: { control: { type: "finish", reason: "two" } } }
      ]
    },
    [{ do: "run", expect: { status: byCaller("two") } }],
    { turnsCompleted: 2 }
  )
])
