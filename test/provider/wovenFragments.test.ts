/** Fragments of calls and texts that arrive woven into each other belong to the item whose id or index they have. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { delta } from "../support/chatStream.ts"
import { readingOf } from "../support/provider.ts"

const piece = (id: string, index: number, text: string, name?: string) =>
  delta({ tool_calls: [{ index, id, type: "function", function: { ...(name && { name }), arguments: text } }] })

const started = (index: number, id: string, name: string) => ({
  type: "content_block_start",
  index,
  content_block: { type: "tool_use", id, name, input: {} }
})
const grown = (index: number, partial_json: string) => ({
  type: "content_block_delta",
  index,
  delta: { type: "input_json_delta", partial_json }
})

const added = (output_index: number, id: string, name: string) => ({
  type: "response.output_item.added",
  output_index,
  item: { type: "function_call", id: `item_${id}`, call_id: id, name, arguments: "" }
})
const argued = (output_index: number, id: string, text: string) => ({
  type: "response.function_call_arguments.delta",
  output_index,
  item_id: `item_${id}`,
  delta: text
})

/** Two calls, `a` and `b`, whose fragments take turns. */
const wires: ReadonlyArray<readonly [how: string, vendor: string, events: ReadonlyArray<object>]> = [
  [
    "by their ids, with one index for all",
    "compatible",
    [
      piece("x", 0, '{"p"', "a"),
      piece("y", 0, '{"q"', "b"),
      piece("x", 0, ":1}"),
      piece("y", 0, ":2}"),
      delta({}, "tool_calls")
    ]
  ],
  [
    "by their indexes",
    "openai",
    [
      piece("x", 0, '{"p"', "a"),
      piece("y", 1, '{"q"', "b"),
      delta({ tool_calls: [{ index: 0, function: { arguments: ":1}" } }] }),
      delta({ tool_calls: [{ index: 1, function: { arguments: ":2}" } }] }),
      delta({}, "tool_calls")
    ]
  ],
  [
    "by their blocks",
    "anthropic",
    [
      { type: "message_start", message: { id: "m" } },
      started(0, "x", "a"),
      started(1, "y", "b"),
      grown(0, '{"p"'),
      grown(1, '{"q"'),
      grown(0, ":1}"),
      grown(1, ":2}"),
      { type: "content_block_stop", index: 0 },
      { type: "content_block_stop", index: 1 },
      { type: "message_delta", delta: { stop_reason: "tool_use" } },
      { type: "message_stop" }
    ]
  ],
  [
    "by their items",
    "openai-responses",
    [
      added(0, "x", "a"),
      added(1, "y", "b"),
      argued(0, "x", '{"p"'),
      argued(1, "y", '{"q"'),
      argued(0, "x", ":1}"),
      argued(1, "y", ":2}"),
      { type: "response.completed", response: { status: "completed" } }
    ]
  ]
]

describe("fragments of two calls that take turns", () => {
  it.effect.each(wires)("are told apart %s (%s)", ([, vendor, events]) =>
    Effect.gen(function* () {
      const { parts } = yield* readingOf(vendor, events)
      const calls = parts.flatMap((part) => (part.type === "tool-call" ? [[part.id, part.name, part.params]] : []))
      assert.deepStrictEqual(calls, [
        ["x", "a", { p: 1 }],
        ["y", "b", { q: 2 }]
      ])
    })
  )
})
