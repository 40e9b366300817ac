/** The lines about replies: what a vendor said. Each is a promise, and the tests that prove it. */
export const wireReplies: ReadonlyArray<readonly [line: string, files: ReadonlyArray<string>]> = [
  ["a reply whose finish reason has arrived is whole", ["test/provider/afterTheEnd.test.ts"]],
  ["a typed answer is read out of a fence, behind a sentence and after thinking", ["test/kernel/typedAnswer.test.ts"]],
  ["thinking in the text of a reply is thinking", ["test/provider/thinkTags.test.ts"]],
  ["what a cut reply used is stored", ["test/provider/cutUsage.test.ts"]],
  ["the text of a reply that was cut is in its error", ["test/provider/cutUsage.test.ts"]],
  ["what a cancelled reply used is stored behind its cancellation", ["test/provider/cutUsage.test.ts"]],
  ["replies that end too early have a bound, and their text is in the error", ["test/kernel/cutReplies.test.ts"]],
  [
    "a turn that its vendor pauses goes back as it is, and its text begins the answer",
    ["test/provider/HostedTools.test.ts"]
  ],
  ["fragments that are woven into each other are told apart", ["test/provider/wovenFragments.test.ts"]],
  ["later events of a reply complete earlier ones, once", ["test/provider/lateEvents.test.ts"]],
  [
    "sources and citations reach parts, the stored message, its result, `useChat`, A2A, the command line and no request",
    ["test/provider/sources.test.ts"]
  ],
  [
    "an unknown price is nothing, in every surface, and a span of an agent repeats no tokens",
    ["test/kernel/unknownCost.test.ts", "test/Telemetry.test.ts"]
  ],
  ["a new reason of an end is kept, and an error of a router is an error", ["test/provider/unknownEnds.test.ts"]]
]
