import {
  answered,
  answeringHooks,
  asked,
  begun,
  callA,
  closed,
  completed,
  done,
  failed,
  one,
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

const crashIn = (tool: string) => ({ do: "run" as const, crash: { duringTool: tool }, expect: {} })

tests("verdicts on calls in flight (DR-16, DR-17)", [
  scenario(
    "retry: repeats the call with its id and its input",
    three,
    [
      crashIn("call-b"),
      {
        do: "resume",
        with: { replay: { "call-b": "retry" } },
        expect: {
          events: [...ran("b", "c"), ...closed, ...answered],
          toolsRun: ["call-b", "call-c"],
          status: completed
        }
      }
    ],
    { toolExecutions: ["call-a", "call-b", "call-b", "call-c"] }
  ),
  scenario(
    "resolve: uses the given result without running the call or its hook",
    three,
    [
      crashIn("call-b"),
      {
        do: "resume",
        with: { replay: { "call-b": { resolve: { output: "known" } } } },
        expect: {
          events: [...ran("c"), ...closed, ...answered],
          toolsRun: ["call-c"],
          hooks: ["onToolCallCompleted:call-c", "onToolCallsCompleted", "onTurnCompleted", ...answeringHooks],
          status: completed
        }
      }
    ],
    { toolExecutions: ["call-a", "call-b", "call-c"] }
  ),
  scenario("resolve with an error, for the only call: completes the turn", one, [
    crashIn("call-a"),
    {
      do: "resume",
      with: { replay: { "call-a": { resolve: { error: "the bank said no" } } } },
      expect: { events: [...closed, ...answered], toolsRun: [], status: completed, revision: 17 }
    }
  ]),
  scenario(
    "fail, given or by default: stops every resume",
    one,
    [
      crashIn("call-a"),
      { do: "resume", with: { replay: { "call-a": "fail" } }, expect: { error: "InFlightToolCalls", revision: 9 } },
      { do: "resume", expect: { error: "InFlightToolCalls", revision: 10 } },
      { do: "resume", with: { replay: { "call-z": "retry" } }, expect: { error: "InFlightToolCalls", revision: 11 } },
      { do: "resume", with: { replay: { "call-a": "retry" } }, expect: { status: completed } }
    ],
    { toolExecutions: ["call-a", "call-a"] }
  ),
  scenario(
    "fail may be given for a repeatable call",
    { ...one, tools: { ...one.tools, A: { output: "a", idempotent: true } } },
    [
      crashIn("call-a"),
      { do: "resume", with: { replay: { "call-a": "fail" } }, expect: { toolsRun: [], error: "InFlightToolCalls" } },
      { do: "resume", expect: { toolsRun: ["call-a"], status: completed } }
    ]
  ),
  scenario(
    "a result stored before the crash is passed to its hook, whatever the decision about the others",
    { ...three, toolConcurrency: 2, context: {} },
    [
      { do: "run", crash: { inHook: "onToolCallCompleted:call-a" }, expect: { revision: 12 } },
      {
        do: "resume",
        with: { replay: { "call-b": { resolve: { output: "known" } } } },
        expect: {
          events: [...ran("c"), ...closed, ...answered],
          hooks: [
            "onToolCallCompleted:call-a",
            "onToolCallCompleted:call-c",
            "onToolCallsCompleted",
            "onTurnCompleted",
            ...answeringHooks
          ]
        }
      }
    ]
  )
])

tests("failures, and what a resume does with them (DR-14, DR-18)", [
  scenario(
    "a model that fails: the committed prompt is sent again",
    { ...plain, script: [{ error: "overloaded" }, done] },
    [
      {
        do: "run",
        expect: {
          events: ["run_started", ...asked.slice(0, 3), "run_failed"],
          status: failed("model_started"),
          error: "ModelError",
          revision: 5
        }
      },
      {
        do: "resume",
        with: { context: { more: true } },
        expect: {
          events: ["model_restarted", "model_completed", "turn_completed", "run_completed"],
          hooks: ["onModelRestarted", "onModelCompleted", "onTurnCompleted", "onRunCompleted"],
          revision: 10
        }
      }
    ],
    { context: { more: true }, modelCalls: 2 }
  ),
  scenario(
    "a tool that fails has an error as its result, and the run continues",
    { ...three, tools: { ...three.tools, B: { error: "disk full" } } },
    [{ do: "run", expect: { status: completed, toolsRun: ["call-a", "call-b", "call-c"] } }]
  ),
  scenario(
    "an unknown tool has an error as its result",
    { ...one, script: [{ toolCalls: [{ id: "call-a", name: "nobody", input: {} }] }, done] },
    [
      {
        do: "run",
        expect: {
          events: [...begun, "tool_calls_started", ...reviewed("a"), ...ran("a"), ...closed, ...answered],
          toolsRun: []
        }
      }
    ]
  ),
  scenario(
    "a middleware that dies in the second call fails the run there, and the first is not repeated",
    { ...three, tools: { ...three.tools, B: { middlewareThrows: "broken" } } },
    [
      { do: "run", expect: { status: failed("tool_call_completed"), error: "MiddlewareError", toolsRun: ["call-a"] } },
      { do: "resume", expect: { events: ["run_failed"], toolsRun: [], error: "InFlightToolCalls" } },
      {
        do: "resume",
        with: { replay: { "call-b": { resolve: { output: "by hand" } } } },
        expect: { toolsRun: ["call-c"], status: completed }
      }
    ]
  ),
  scenario(
    "a completed run returns its result, and commits nothing",
    one,
    [
      { do: "run", expect: { revision: 17 } },
      {
        do: "resume",
        with: { context: { x: 1 }, rewind: true },
        expect: { events: [], hooks: [], revision: 17, status: completed }
      }
    ],
    { context: {} }
  )
])

tests("rewind (DR-19)", [
  scenario(
    "after a model failure: prepares the turn again, without a second start event",
    { ...plain, script: [{ error: "overloaded" }, done] },
    [
      { do: "run", expect: { status: failed("model_started"), error: "ModelError" } },
      {
        do: "resume",
        with: { rewind: true, context: { reply: "now" } },
        expect: {
          events: [...asked.slice(1), "turn_completed", "run_completed"],
          hooks: ["onTurnPrepared", "onModelStarted", "onModelCompleted", "onTurnCompleted", "onRunCompleted"],
          revision: 11
        }
      }
    ],
    { context: { reply: "now" }, modelCalls: 2 }
  ),
  scenario("after a crash in the model call: emits no second start event either", plain, [
    { do: "run", crash: { duringModel: true }, expect: {} },
    {
      do: "resume",
      with: { rewind: true },
      expect: {
        hooks: ["onTurnPrepared", "onModelStarted", "onModelCompleted", "onTurnCompleted", "onRunCompleted"],
        status: completed
      }
    }
  ]),
  scenario("from turn_started: its hook runs if it has not, and only then", plain, [
    { do: "run", crash: { afterRevision: 2 }, expect: {} },
    {
      do: "resume",
      with: { rewind: true },
      expect: {
        hooks: [...answeringHooks]
      }
    }
  ]),
  scenario(
    "from turn_prepared, twice",
    plain,
    [
      { do: "run", crash: { afterRevision: 3 }, expect: {} },
      { do: "resume", with: { rewind: true }, crash: { afterRevision: 5 }, expect: { events: ["turn_prepared"] } },
      { do: "resume", with: { rewind: true }, expect: { status: completed, revision: 11 } }
    ],
    { modelCalls: 1, turnsCompleted: 1 }
  ),
  scenario(
    "a rewind that was cut off before the turn was prepared again is not undone",
    { ...plain, hooks: [throws("onModelStarted")] },
    [
      { do: "run", expect: { status: failed("model_started"), error: "RunFailed" } },
      {
        do: "resume",
        with: { rewind: true },
        crash: { afterRevision: 6 },
        expect: { status: { type: "running", phase: "turn_started" } }
      },
      { do: "resume", expect: { events: [...asked.slice(1), "turn_completed", "run_completed"] } }
    ]
  ),
  ...["run_started", "model_completed", "tool_calls_started", "tool_call_completed", "turn_completed"].map((phase) => {
    const hook: { readonly [phase: string]: string } = {
      run_started: "onRunStarted",
      model_completed: "onModelCompleted",
      tool_calls_started: "onToolCallStarted",
      tool_call_completed: "onToolCallCompleted",
      turn_completed: "onTurnCompleted"
    }
    return scenario(
      `not from ${phase}: nothing is committed, and the run can go on`,
      { ...one, hooks: [pauses(hook[phase] ?? "")] },
      [
        { do: "run", expect: { status: paused(phase) } },
        {
          do: "resume",
          with: { rewind: true },
          expect: { events: [], error: "RewindNotAllowed", status: paused(phase) }
        },
        { do: "resume", expect: { status: completed } }
      ]
    )
  })
])

tests("interruption (DR-21, R-16)", [
  scenario(
    "in the model call: no failure, no event, and the same head",
    one,
    [
      {
        do: "run",
        interrupt: "model",
        expect: { events: ["run_started", ...asked.slice(0, 3)], error: "Interrupted", revision: 4 }
      },
      { do: "resume", expect: { status: completed } }
    ],
    { modelCalls: 3 }
  ),
  scenario(
    "when the model has answered: the answer is stored first",
    one,
    [
      { do: "run", interrupt: "model_returned", expect: { events: begun, error: "Interrupted", revision: 5 } },
      { do: "resume", expect: { status: completed, revision: 18 } }
    ],
    { modelCalls: 2 }
  ),
  scenario(
    "in a tool: its call stays in flight",
    three,
    [
      {
        do: "run",
        interrupt: "tool:call-b",
        expect: { error: "Interrupted", toolsRun: ["call-a", "call-b"], revision: 12 }
      },
      { do: "resume", expect: { error: "InFlightToolCalls", toolsRun: [] } }
    ],
    { openTurn: { pending: ["call-c"], inFlight: ["call-b"], completed: ["call-a"] } }
  ),
  scenario(
    "when a tool has returned: its result is stored first, and its hook runs after the resume",
    three,
    [
      { do: "run", interrupt: "tool_returned:call-b", expect: { error: "Interrupted", revision: 13 } },
      {
        do: "resume",
        expect: { events: [...ran("c"), ...closed, ...answered], toolsRun: ["call-c"], status: completed }
      }
    ],
    { toolExecutions: ["call-a", "call-b", "call-c"] }
  )
])

tests("two workers (DR-6, R-5)", [
  ...[1, 3, 5, 7, 9, 11].map((revision) =>
    scenario(
      `both resume what stands at revision ${revision}: one goes on, the other does nothing`,
      { ...one, script: [callA, done] },
      [
        { do: "run", crash: { afterRevision: revision }, expect: {} },
        {
          do: "race",
          expect: {
            status: completed,
            second: {
              events: [],
              toolsRun: [],
              hooks: [],
              error: "ConcurrentAppendError",
              errorFields: { expected: revision }
            }
          }
        }
      ],
      { toolExecutions: ["call-a"] }
    )
  ),
  scenario(
    "a suspended process wakes inside a tool that writes: its result is refused, and it does nothing more",
    one,
    [
      {
        do: "zombie",
        tool: "call-a",
        expect: {
          toolsRun: ["call-a"],
          error: "ConcurrentAppendError",
          errorFields: { expected: 8, actual: 9 },
          status: failed("tool_call_started", "InFlightToolCalls"),
          second: { events: ["run_failed"], toolsRun: [], error: "InFlightToolCalls" }
        }
      }
    ],
    { toolExecutions: ["call-a"], openTurn: { inFlight: ["call-a"] } }
  )
])
