import { assert, describe, it, vi } from "@effect/vitest"
import { Effect } from "effect"
import type { StreamPart } from "../../src/StreamPart.ts"
import { delta } from "../support/chatStream.ts"
import { finishOf, read, request, stub, vendor } from "../support/provider.ts"
import { times } from "../support/longRun.ts"
import { reading, readingAs } from "../support/openAi.ts"

const callsOf = (parts: ReadonlyArray<StreamPart>) => parts.filter((part) => part.type === "tool-call")

describe("a reply of a server that gives every call the index 0", () => {
  it.effect("distinguishes its calls by their ids, reading none twice (R-21)", () =>
    Effect.gen(function* () {
      // Looking through all of them for each takes longer than a test of the long run is given.
      const count = times(30_000, 3_000)
      const piece = (id: number) => ({ index: 0, id: `c${id}`, function: { name: "add", arguments: `{"a":${id}}` } })
      const list = Array.from({ length: count }, (_, id) => delta({ tool_calls: [piece(id)] }))
      const { parts } = yield* reading(...list, delta({}, "tool_calls"))
      assert.deepStrictEqual(
        callsOf(parts).map((call) => call.params),
        Array.from({ length: count }, (_, a) => ({ a }))
      )
    })
  )
})

describe("the calls of a reply to OpenAiProvider", () => {
  it.effect("assembles calls from fragments by their index, however mixed", () =>
    Effect.gen(function* () {
      const part = (index: number, more: object) => delta({ tool_calls: [{ index, ...more }] })
      const { parts } = yield* reading(
        part(0, { id: "a", function: { name: "add", arguments: "" } }),
        part(1, { id: "b", function: { name: "sub", arguments: '{"y"' } }),
        part(0, { function: { arguments: '{"x":' } }),
        part(1, { function: { arguments: ":2}" } }),
        part(0, { function: { arguments: "1}" } }),
        delta({}, "tool_calls"),
        "[DONE]"
      )
      assert.deepStrictEqual(callsOf(parts), [
        { type: "tool-call", id: "a", name: "add", params: { x: 1 } },
        { type: "tool-call", id: "b", name: "sub", params: { y: 2 } }
      ])
      assert.strictEqual(finishOf(parts)?.reason, "tool-calls")
    })
  )

  it.effect("never merges or drops calls whose ids or indexes repeat or are missing (R-24)", () =>
    Effect.gen(function* () {
      const call = (more: object, name?: string) =>
        delta({ tool_calls: [{ ...more, function: { ...(name === undefined ? {} : { name }), arguments: "{}" } }] })
      const same = yield* reading(
        call({ index: 0, id: "a" }, "add"),
        call({ index: 1, id: "a" }, "add"),
        delta({}, "stop")
      )
      assert.deepStrictEqual(
        callsOf(same.parts).map((part) => part.id),
        ["a", "a#2"]
      )
      const zero = yield* reading(
        call({ index: 0, id: "a" }, "add"),
        call({ index: 0, id: "b" }, "sub"),
        delta({}, "stop")
      )
      assert.deepStrictEqual(
        callsOf(zero.parts).map((part) => part.name),
        ["add", "sub"]
      )
      const head = (name: string) => delta({ tool_calls: [{ index: 0, id: "0", function: { name, arguments: "" } }] })
      const empty = yield* reading(head("add"), head("sub"), delta({}, "stop"))
      assert.deepStrictEqual(
        callsOf(empty.parts).map((part) => part.name),
        ["add", "sub"]
      )
      const bare = yield* reading(call({}, "add"), call({}, "sub"), delta({}, "stop"))
      assert.strictEqual(callsOf(bare.parts).length, 2)
      assert.strictEqual(finishOf(bare.parts)?.reason, "tool-calls")
    })
  )

  type Fragment = readonly [
    id: string | undefined,
    name: string | undefined,
    arguments: string,
    index?: number | undefined
  ]
  const fragment = ([id, name, params, index]: Fragment) => ({ index, id, function: { name, arguments: params } })
  const fragments = (...list: ReadonlyArray<Fragment>) => list.map((given) => delta({ tool_calls: [fragment(given)] }))

  for (const [what, chunks] of [
    ["one id for both, at one index", fragments(["0", "a", '{"p":1}', 0], ["0", "b", '{"q":2}', 0])],
    ["no ids, at one index", fragments([undefined, "a", '{"p":1}', 0], [undefined, "b", '{"q":2}', 0])],
    [
      "no ids, at one index, the second name before its arguments",
      fragments([undefined, "a", '{"p":1}', 0], [undefined, "b", "", 0], [undefined, undefined, '{"q":2}', 0])
    ],
    [
      "one id for both, in one chunk",
      [delta({ tool_calls: [fragment(["x", "a", '{"p":1}']), fragment(["x", "b", '{"q":2}'])] })]
    ],
    [
      "their ids in every fragment, mixed",
      fragments(["x", "a", '{"p"'], ["y", "b", '{"q"'], ["x", undefined, ":1}"], ["y", undefined, ":2}"])
    ],
    [
      "their names in every fragment",
      fragments(
        ["x", "a", '{"p"', 0],
        ["x", "a", ":1}", 0],
        ["x", "a", "", 0],
        ["x", "b", '{"q"', 0],
        ["x", "b", ":2}", 0]
      )
    ],
    [
      "their names last",
      fragments(
        ["x", undefined, '{"p":', 0],
        [undefined, "a", "1}", 0],
        ["y", undefined, "", 1],
        ["y", "b", '{"q":2}', 1]
      )
    ]
  ] as const) {
    it.effect(`distinguishes two calls that arrive with ${what} (R-24)`, () =>
      Effect.gen(function* () {
        const { parts } = yield* reading(...chunks, delta({}, "tool_calls"))
        assert.deepStrictEqual(
          callsOf(parts).map((call) => [call.name, call.params]),
          [
            ["a", { p: 1 }],
            ["b", { q: 2 }]
          ]
        )
        const told = parts.flatMap((part) => (part.type === "tool-params-start" ? [part.name] : []))
        assert.deepStrictEqual(told, ["a", "b"])
      })
    )
  }

  for (const [what, chunks] of [
    [
      "whole, after its pieces",
      fragments(["x", "a", "", 0], [undefined, undefined, '{"p":1}', 0], ["x", "a", '{"p":1}', 0])
    ],
    [
      "in another spelling",
      fragments(
        ["x", "a", '{ "p": ', 0],
        [undefined, undefined, "1 }", 0],
        ["x", "a", '{"p":1}', 0],
        ["x", "a", '{"p": 1}\n', 0]
      )
    ],
    [
      "without its name",
      fragments(
        ["x", "a", '{"p":', 0],
        [undefined, undefined, "1}", 0],
        [undefined, undefined, '{"p":1}', 0],
        ["x", undefined, '{"p":1}', 0]
      )
    ],
    [
      "where every call has index 0",
      fragments(["x", "a", '{"p":1}', 0], ["y", "b", "{}", 0], ["x", "a", '{"p":1}', 0], ["y", "b", "{}", 0])
    ],
    ["in the same chunk sent twice", fragments(["x", "a", '{"p":1}', 0], ["x", "a", '{"p":1}', 0])],
    ["without an index", fragments(["x", "a", '{"p":1}'], ["y", "b", "{}"], ["x", "a", '{"p":1}'], ["y", "b", "{}"])],
    [
      "with an object as its arguments",
      [0, 1].map(() => delta({ tool_calls: [{ index: 0, id: "x", function: { name: "a", arguments: { p: 1 } } }] }))
    ]
  ] as const) {
    it.effect(`reads a call once that is repeated ${what} (R-24)`, () =>
      Effect.gen(function* () {
        const { parts } = yield* reading(...chunks, delta({}, "tool_calls"))
        assert.deepStrictEqual(
          callsOf(parts)
            .filter(({ name }) => name === "a")
            .map(({ id, params }) => [id, params]),
          [["x", { p: 1 }]]
        )
        assert.strictEqual(callsOf(parts).length, new Set(callsOf(parts).map(({ name }) => name)).size)
      })
    )
  }

  it.effect("reads long arguments only a few times, however many fragments follow (S-12)", () =>
    Effect.gen(function* () {
      const long = JSON.stringify({ a: "x".repeat(100_000) })
      let readings = 0
      const { parse } = JSON
      const spy = vi.spyOn(JSON, "parse").mockImplementation((text, reviver) => {
        if (text.startsWith(long)) readings++
        return parse(text, reviver)
      })
      yield* Effect.addFinalizer(() => Effect.sync(() => spy.mockRestore()))
      const pieces = Array.from({ length: 100 }, () => [undefined, undefined, "x{}", 0] as const)
      yield* reading(...fragments(["x", "a", long, 0], ...pieces), delta({}, "tool_calls"))
      assert.isAtMost(readings, 4)
    })
  )

  for (const index of [0, undefined]) {
    it.effect(`reads an empty object before the arguments of a call as their beginning, index ${index}`, () =>
      Effect.gen(function* () {
        const { parts } = yield* reading(
          ...fragments(
            ["x", "a", "{}", index],
            [undefined, undefined, " ", index],
            [undefined, undefined, '{"p"', index],
            [undefined, undefined, ":1}", index]
          ),
          ...fragments(["y", "b", "{}", index === undefined ? undefined : 1]),
          delta({}, "tool_calls")
        )
        assert.deepStrictEqual(
          callsOf(parts).map(({ id, name, params }) => [id, name, params]),
          [
            ["x", "a", { p: 1 }],
            ["y", "b", {}]
          ]
        )
      })
    )
  }

  for (const [what, chunks, params] of [
    ["a brace too many", fragments(["x", "a", '{"p":1}', 0], [undefined, undefined, "}", 0]), '{"p":1}}'],
    ["the end of a fence", fragments(["x", "a", '{"p":1}'], [undefined, undefined, "\n```"]), '{"p":1}\n```'],
    ["the rest of a list", fragments(["x", "a", '[{"p":1}', 0], [undefined, undefined, ",2]", 0]), [{ p: 1 }, 2]]
  ] as const) {
    it.effect(`reads ${what} after an object as part of the arguments, which begins no other call (R-24)`, () =>
      Effect.gen(function* () {
        const { parts } = yield* reading(...chunks, delta({}, "tool_calls"))
        assert.deepStrictEqual(
          callsOf(parts).map(({ id, params }) => [id, params]),
          [["x", params]]
        )
      })
    )
  }

  for (const index of [0, undefined]) {
    it.effect(`reads arguments after whole ones as another call of that id and name (R-24), index ${index}`, () =>
      Effect.gen(function* () {
        const { parts } = yield* reading(
          ...fragments(
            ["x", "a", '{"p":1}', index],
            ["x", "a", "", index],
            [undefined, undefined, '{"p"', index],
            ["x", "a", "", index],
            [undefined, undefined, ":2}", index]
          ),
          delta({}, "tool_calls")
        )
        assert.deepStrictEqual(
          callsOf(parts).map(({ id, name, params }) => [id, name, params]),
          [
            ["x", "a", { p: 1 }],
            ["x#2", "a", { p: 2 }]
          ]
        )
      })
    )
  }

  it.effect("assigns arguments without id to the call before them, even if its arguments were complete (R-24)", () =>
    Effect.gen(function* () {
      const { parts } = yield* reading(
        ...fragments(["x", "a", '{"p":1}'], [undefined, undefined, '{"p":2}']),
        delta({}, "tool_calls")
      )
      assert.deepStrictEqual(
        callsOf(parts).map(({ id, name, params }) => [id, name, params]),
        [
          ["x", "a", { p: 1 }],
          ["x#2", "a", { p: 2 }]
        ]
      )
    })
  )

  it.effect("reads every item of a whole reply as a call of its own, whatever its id (R-24)", () =>
    Effect.gen(function* () {
      const calls: ReadonlyArray<Fragment> = [
        ["x", "a", '{"p":1}'],
        ["x", "a", '{"p":2}'],
        [undefined, "a", "{"]
      ]
      const message = { role: "assistant", content: null, tool_calls: calls.map(fragment) }
      const whole = JSON.stringify({ choices: [{ index: 0, message, finish_reason: "tool_calls" }] })
      const http = stub(() => Effect.succeed(new Response(whole)))
      const provider = yield* Effect.provide(vendor("openai")({}), http.layer)
      const { parts } = yield* read(provider.stream(request()))
      assert.deepStrictEqual(
        callsOf(parts).map((call) => [call.id, call.params]),
        [
          ["x", { p: 1 }],
          ["x#2", { p: 2 }],
          ["call_2", "{"]
        ]
      )
    })
  )

  it.effect("continues parallel calls without index or id by their position (R-24)", () =>
    Effect.gen(function* () {
      const begun = (name: string) => ({ id: `c-${name}`, function: { name, arguments: "" } })
      const piece = (text: string) => ({ function: { arguments: text } })
      const { parts } = yield* reading(
        delta({ tool_calls: [begun("add"), begun("sub")] }),
        delta({ tool_calls: [piece('{"a":'), piece('{"b":')] }),
        delta({ tool_calls: [piece("1}"), piece("2}")] }),
        delta({}, "tool_calls")
      )
      assert.deepStrictEqual(
        callsOf(parts).map((call) => [call.id, call.params]),
        [
          ["c-add", { a: 1 }],
          ["c-sub", { b: 2 }]
        ]
      )
    })
  )

  it.effect("continues a call without index or id in the next fragments", () =>
    Effect.gen(function* () {
      const { parts } = yield* readingAs(
        "compatible",
        delta({ tool_calls: [{ id: "a", function: { name: "add", arguments: '{"x"' } }] }),
        delta({ tool_calls: [{ function: { arguments: ":1}" } }] }),
        delta({ tool_calls: [{ id: "b", function: { name: "sub", arguments: { y: 2 } } }] }),
        delta({}, "tool_calls")
      )
      assert.deepStrictEqual(
        callsOf(parts).map((part) => part.params),
        [{ x: 1 }, { y: 2 }]
      )
    })
  )

  it.effect("reads the legacy `function_call` of a message, in pieces or whole", () =>
    Effect.gen(function* () {
      const call = (function_call: object) => ({ content: null, tool_calls: null, function_call })
      const whole = call({ name: "add", arguments: '{"x":1}' })
      for (const list of [
        [
          delta(call({ name: "add", arguments: "" })),
          delta(call({ arguments: '{"x"' })),
          delta(call({ arguments: ":1}" })),
          delta({}, "function_call")
        ],
        [{ choices: [{ index: 0, message: whole, finish_reason: "function_call" }] }],
        [delta(whole), { choices: [{ index: 0, message: whole, finish_reason: "function_call" }] }]
      ]) {
        const { parts } = yield* reading(...list, "[DONE]")
        assert.deepStrictEqual(callsOf(parts), [{ type: "tool-call", id: "call_0", name: "add", params: { x: 1 } }])
        assert.strictEqual(finishOf(parts)?.reason, "tool-calls")
      }
      const listed = { ...whole, tool_calls: [{ index: 0, id: "a", function: whole.function_call }] }
      const { parts } = yield* reading(delta(listed, "tool_calls"), "[DONE]")
      assert.deepStrictEqual(callsOf(parts), [{ type: "tool-call", id: "a", name: "add", params: { x: 1 } }])
    })
  )

  it.effect("ignores a call without name and arguments, which some servers send with every piece of text", () =>
    Effect.gen(function* () {
      for (const function_call of [{}, { name: "", arguments: "" }, { name: null, arguments: null }]) {
        const { parts, text } = yield* reading(delta({ content: "x", function_call }, "stop"), "[DONE]")
        assert.strictEqual(text, "x")
        assert.strictEqual(finishOf(parts)?.reason, "stop")
      }
    })
  )
})
