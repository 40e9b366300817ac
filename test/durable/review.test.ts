import {
  answered,
  answeringHooks,
  askingHooks,
  begun,
  callAll,
  closed,
  completed,
  done,
  one,
  paused,
  pauses,
  ran,
  reviewed,
  scenario,
  tests,
  three
} from "../support/scenarios.ts"

const calls = (...names: ReadonlyArray<readonly [id: string, name: string]>) => ({
  toolCalls: names.map(([id, name], x) => ({ id, name, input: { x } }))
})

tests("a batch in other hands (DR-11)", [
  scenario(
    "an empty batch of calls ends the turn and the run",
    { ...three, hooks: [{ hook: "onToolCallsStarted", decision: { value: { keep: [] } } }] },
    [
      {
        do: "run",
        expect: {
          events: [...begun, "tool_calls_started", ...closed, "run_completed"],
          toolsRun: [],
          status: completed,
          revision: 9
        }
      }
    ],
    { modelCalls: 1 }
  ),
  scenario(
    "dropped calls are not reviewed and not run",
    { ...three, hooks: [{ hook: "onToolCallsStarted", decision: { value: { keep: ["call-a", "call-c"] } } }] },
    [
      {
        do: "run",
        expect: {
          events: [...begun, "tool_calls_started", ...reviewed("a", "c"), ...ran("a", "c"), ...closed, ...answered],
          toolsRun: ["call-a", "call-c"]
        }
      }
    ]
  ),
  scenario(
    "rewritten calls run with what was written, after a crash too",
    { ...three, hooks: [{ hook: "onToolCallsStarted", decision: { value: { mergeInput: { y: 9 } } } }] },
    [
      { do: "run", crash: { afterRevision: 6 }, expect: { toolsRun: [] } },
      { do: "resume", expect: { status: completed } }
    ],
    {
      toolInputs: [
        { toolCallId: "call-a", input: { x: 1, y: 9 } },
        { toolCallId: "call-b", input: { x: 2, y: 9 } },
        { toolCallId: "call-c", input: { x: 3, y: 9 } }
      ]
    }
  ),
  scenario(
    "the hook about the batch runs again after a crash before its commit, and not after it",
    { ...one, hooks: [{ hook: "onToolCallsStarted", times: 1, decision: { value: { mergeInput: { y: 1 } } } }] },
    [
      { do: "run", crash: { inHook: "onToolCallsStarted" }, expect: { revision: 5 } },
      { do: "resume", crash: { afterRevision: 7 }, expect: { revision: 7 } },
      { do: "resume", expect: { status: completed } }
    ],
    { toolInputs: [{ toolCallId: "call-a", input: { x: 1, y: 1 } }] }
  )
])

const wraps = {
  hook: "onToolCallStarted",
  match: { toolName: "A" },
  decision: { value: { wrapCommand: "sudo" } }
}
const command = { ...three, script: [{ toolCalls: [{ id: "call-a", name: "A", input: { command: "ls" } }] }, done] }

tests("the review of one call (DR-11)", [
  scenario(
    "a rewrite is applied once, however often the run is resumed",
    { ...command, hooks: [wraps] },
    [
      { do: "run", crash: { afterRevision: 7 }, expect: { revision: 7 } },
      { do: "resume", crash: { afterRevision: 8 }, expect: { revision: 8 } },
      {
        do: "resume",
        expect: {
          hooks: ["onToolCallCompleted:call-a", "onToolCallsCompleted", "onTurnCompleted", ...answeringHooks]
        }
      }
    ],
    { toolInputs: [{ toolCallId: "call-a", input: { command: "sudo ls" } }] }
  ),
  scenario(
    "a pause at a later call keeps the rewrites before it",
    {
      ...three,
      script: [
        {
          toolCalls: [
            { id: "call-a", name: "A", input: { command: "ls" } },
            { id: "call-b", name: "B", input: { x: 2 } }
          ]
        },
        done
      ],
      hooks: [wraps, pauses("onToolCallStarted", 1, { toolName: "B" })]
    },
    [
      { do: "run", expect: { status: paused("tool_call_started"), toolsRun: [] } },
      { do: "resume", expect: { toolsRun: ["call-a", "call-b"], status: completed } }
    ],
    {
      toolInputs: [
        { toolCallId: "call-a", input: { command: "sudo ls" } },
        { toolCallId: "call-b", input: { x: 2 } }
      ]
    }
  ),
  scenario(
    "a skipped call has a result, does not reach onToolCallCompleted, and the model is called again",
    {
      ...three,
      hooks: [{ hook: "onToolCallStarted", decision: { value: { type: "skip", output: { known: true } } } }]
    },
    [
      {
        do: "run",
        expect: {
          events: [...begun, "tool_calls_started", ...reviewed("a", "b", "c"), ...closed, ...answered],
          toolsRun: [],
          revision: 17,
          hooks: [
            "onRunStarted",
            ...askingHooks,
            "onToolCallsStarted",
            "onToolCallStarted:call-a",
            "onToolCallStarted:call-b",
            "onToolCallStarted:call-c",
            "onToolCallsCompleted",
            "onTurnCompleted",
            ...answeringHooks
          ]
        }
      }
    ]
  ),
  scenario(
    "a skip survives a crash",
    {
      ...three,
      hooks: [
        {
          hook: "onToolCallStarted",
          match: { toolName: "A" },
          times: 1,
          decision: { value: { type: "skip", error: "no" } }
        }
      ]
    },
    [
      { do: "run", crash: { inHook: "onToolCallStarted:call-b" }, expect: { revision: 7 } },
      { do: "resume", expect: { toolsRun: ["call-b", "call-c"], status: completed } }
    ]
  ),
  scenario(
    "no call runs before all are reviewed",
    { ...three, hooks: [pauses("onToolCallStarted", 1, { toolName: "C" })] },
    [
      {
        do: "run",
        expect: { events: [...begun, "tool_calls_started", ...reviewed("a", "b"), "paused"], toolsRun: [] }
      },
      { do: "resume", expect: { events: [...reviewed("c"), ...ran("a", "b", "c"), ...closed, ...answered] } }
    ]
  ),
  scenario(
    "calls that share a native id are distinguished, and results belong to their calls (R-24)",
    { ...three, script: [calls(["x", "A"], ["x", "B"], ["x", "C"], ["y", "A"]), done] },
    [{ do: "run", expect: { toolsRun: ["x", "x#2", "x#3", "y"], status: completed } }],
    {
      toolInputs: [
        { toolCallId: "x", input: { x: 0 } },
        { toolCallId: "x#2", input: { x: 1 } },
        { toolCallId: "x#3", input: { x: 2 } },
        { toolCallId: "y", input: { x: 3 } }
      ]
    }
  ),
  scenario(
    "a native id in the kernel's own form does not collide with another call",
    { ...three, script: [calls(["x", "A"], ["x#2", "B"], ["x", "C"]), done] },
    [{ do: "run", expect: { status: completed } }],
    { toolExecutions: ["x", "x#2", "x#2#2"] }
  )
])

const confirm = (...names: ReadonlyArray<string>) =>
  Object.fromEntries(names.map((name) => [name, { decision: "confirm", reason: `${name} writes` }]))

const yes = (id: string, input?: { readonly [key: string]: number | string }) => ({
  toolCallId: `call-${id}`,
  approved: true,
  by: "eva",
  ...(input === undefined ? {} : { input })
})
const no = (id: string, reason?: string) => ({
  toolCallId: `call-${id}`,
  approved: false,
  ...(reason === undefined ? {} : { reason })
})

const waiting = (...ids: ReadonlyArray<string>) => ({
  ...paused("tool_calls_started", "approval_required"),
  metadata: { toolCallIds: ids.map((id) => `call-${id}`) }
})

tests("a person decides (DR-22, R-25)", [
  scenario(
    "the question names each call, its input and the reason, before anything runs",
    { ...three, policy: confirm("A", "C") },
    [
      {
        do: "run",
        expect: {
          events: [...begun, "tool_calls_started", "paused"],
          toolsRun: [],
          revision: 6,
          status: {
            ...waiting("a", "c"),
            metadata: {
              toolCallIds: ["call-a", "call-c"],
              approvals: [
                { toolCallId: "call-a", toolName: "A", input: { x: 1 }, reason: "A writes" },
                { toolCallId: "call-c", toolName: "C", input: { x: 3 }, reason: "C writes" }
              ]
            }
          }
        }
      },
      {
        do: "resume",
        with: { approvals: [yes("a"), no("c", "not this one")] },
        expect: {
          toolsRun: ["call-a", "call-b"],
          hooks: [
            "onToolCallStarted:call-a",
            "onToolCallStarted:call-b",
            "onToolCallCompleted:call-a",
            "onToolCallCompleted:call-b",
            "onToolCallsCompleted",
            "onTurnCompleted",
            ...answeringHooks
          ],
          status: completed
        }
      }
    ]
  ),
  scenario(
    "missing answers are requested again, given ones stay",
    { ...three, policy: confirm("A", "B", "C") },
    [
      { do: "run", expect: { status: waiting("a", "b", "c"), revision: 6 } },
      {
        do: "resume",
        with: { approvals: [yes("b")] },
        expect: { events: ["paused"], status: waiting("a", "c"), revision: 8 }
      },
      { do: "resume", expect: { events: ["paused"], status: waiting("a", "c"), revision: 10 } },
      { do: "resume", with: { approvals: [no("a"), yes("c")] }, expect: { toolsRun: ["call-b", "call-c"] } }
    ],
    { status: completed }
  ),
  scenario(
    "an answer is accepted once, for a call that has a question",
    { ...three, policy: confirm("A", "B") },
    [
      { do: "run", expect: { status: waiting("a", "b"), revision: 6 } },
      { do: "resume", with: { approvals: [yes("z")] }, expect: { events: [], error: "QuestionNotFound", revision: 6 } },
      { do: "resume", with: { approvals: [yes("c")] }, expect: { events: [], error: "QuestionNotFound", revision: 6 } },
      { do: "resume", with: { approvals: [yes("a"), yes("a")] }, expect: { error: "QuestionNotFound", revision: 6 } },
      { do: "resume", with: { approvals: [yes("a")] }, expect: { status: waiting("b"), revision: 8 } },
      { do: "resume", with: { approvals: [no("a"), yes("b")] }, expect: { error: "QuestionNotFound", revision: 8 } },
      { do: "resume", with: { approvals: [yes("b")] }, expect: { status: completed } },
      { do: "resume", with: { approvals: [no("b")] }, expect: { events: [], status: completed } }
    ],
    { toolExecutions: ["call-a", "call-b", "call-c"] }
  ),
  scenario(
    "an answer may change what the call runs with",
    { ...one, policy: confirm("A") },
    [
      { do: "run", expect: { status: waiting("a") } },
      { do: "resume", with: { approvals: [yes("a", { x: 7 })] }, expect: { status: completed } }
    ],
    { toolInputs: [{ toolCallId: "call-a", input: { x: 7 } }] }
  ),
  scenario(
    "answers survive a crash right after the resume",
    { ...one, policy: confirm("A") },
    [
      { do: "run", expect: { status: waiting("a") } },
      { do: "resume", with: { approvals: [yes("a", { x: 7 })] }, crash: { afterRevision: 7 }, expect: { revision: 7 } },
      { do: "resume", expect: { status: completed } }
    ],
    { toolInputs: [{ toolCallId: "call-a", input: { x: 7 } }] }
  ),
  scenario(
    "a hook that changes an approved call causes a new question, and does not run again when that is answered",
    {
      ...command,
      policy: confirm("A"),
      hooks: [{ hook: "onToolCallStarted", decision: { value: { wrapCommand: "sudo" } } }]
    },
    [
      { do: "run", expect: { status: waiting("a") } },
      {
        do: "resume",
        with: { approvals: [yes("a")] },
        expect: { events: ["paused"], toolsRun: [], status: waiting("a") }
      },
      { do: "resume", with: { approvals: [yes("a")] }, expect: { status: completed } }
    ],
    { toolInputs: [{ toolCallId: "call-a", input: { command: "sudo ls" } }] }
  ),
  scenario(
    "a person may change the arguments that a hook wrote: the call runs with theirs (DR-11, DR-22)",
    {
      ...command,
      policy: confirm("A"),
      hooks: [{ hook: "onToolCallStarted", decision: { value: { wrapCommand: "sudo" } } }]
    },
    [
      { do: "run", expect: { status: waiting("a") } },
      { do: "resume", with: { approvals: [yes("a")] }, expect: { status: waiting("a") } },
      { do: "resume", with: { approvals: [yes("a", { command: "doas ls" })] }, expect: { status: completed } }
    ],
    { toolInputs: [{ toolCallId: "call-a", input: { command: "doas ls" } }] }
  ),
  scenario(
    "a denied call is reported to the model, asks no question, and does not stop the others",
    { ...three, policy: { B: { decision: "deny", reason: "never" } } },
    [
      {
        do: "run",
        expect: {
          events: [
            ...begun,
            "tool_calls_started",
            ...reviewed("a", "b", "c"),
            ...ran("a", "c"),
            ...closed,
            ...answered
          ],
          toolsRun: ["call-a", "call-c"],
          status: completed
        }
      }
    ]
  ),
  scenario(
    "a refused call and a question in one batch: only the question is asked",
    { ...three, script: [callAll, done], policy: { ...confirm("A"), B: { decision: "deny", reason: "never" } } },
    [
      { do: "run", expect: { status: waiting("a"), toolsRun: [] } },
      { do: "resume", with: { approvals: [yes("b")] }, expect: { error: "QuestionNotFound" } },
      { do: "resume", with: { approvals: [yes("a")] }, expect: { toolsRun: ["call-a", "call-c"], status: completed } }
    ]
  )
])
