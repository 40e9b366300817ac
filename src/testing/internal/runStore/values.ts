/** Checks that every JSON value reads back equal, and that a store refuses values that are not JSON. */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as assert from "../assert.ts"
import type { Content, Json, JsonObject } from "../../../Content.ts"
import * as Contents from "../../../Content.ts"
import { StoreError } from "../../../KernelError.ts"
import * as Journal from "../sampleJournal.ts"
import { type Check, loads, put, refused } from "../sampleJournal.ts"

/** JSON that some stores would not keep. */
const odd: Json = {
  "": "",
  nul: "a\u0000b",
  surrogates: "\ud800 \udc00 \ud83d\ude00",
  "key \u0000 \udfff": 1,
  zero: -0,
  deep: [[[[-0]]]],
  small: 5e-324,
  large: 1.7976931348623157e308,
  text: "1e400",
  breaks: "\r\n\t\u2028\u2029\ufeff",
  quotes: `'"\`\\ ; DROP TABLE kernai_runs; --`,
  none: null,
  flags: [true, false],
  empty: [{}, []],
  10: "ten",
  2: "two",
  constructor: { prototype: { polluted: 1 } },
  ...polluting()
}

const nested = (depth: number): Json => (depth === 0 ? "bottom" : { in: [nested(depth - 1)] })

const contents = (): ReadonlyArray<Content> => [
  Contents.text(""),
  Contents.text("\u0000\ud800"),
  Contents.text("long ".repeat(40_000)),
  Contents.code("let x = 1", "ts"),
  Contents.data({ odd }),
  Contents.error("Boom", "it broke", { recoverable: false, details: { odd } }),
  Contents.image({ fileId: "m1", mediaType: "image/png" }),
  Contents.audio({ url: "https://example.com/a.mp3", transcript: "hm" }),
  Contents.document({ data: new Uint8Array([0, 1, 254, 255]), filename: "a.bin" }),
  Contents.toolUse("c", "t", { odd }),
  Contents.toolResult("c", [Contents.text("inner"), Contents.toolResult("d", [Contents.data({ odd })])]),
  Contents.thinking("hmm", { redacted: true, origin: "mock", signature: { odd } }),
  Contents.uiResource("ui://page", { structuredContent: { odd } })
]

const foreign: ReadonlyArray<unknown> = [
  { type: "hologram", shape: { odd }, list: [null] },
  { type: "text", text: "with more", call_id: "kept", callId: "apart", extra: { odd } }
]

/** Values that are not JSON, each with its path. */
const misfits = (): ReadonlyArray<readonly [name: string, value: unknown]> => [
  ["undefined", undefined],
  ["NaN", Number.NaN],
  ["Infinity", Number.POSITIVE_INFINITY],
  ["BigInt", 1n],
  ["symbol", Symbol("s")],
  ["function", () => 1],
  ["Date", new Date(0)],
  ["Map", new Map([[1, 2]])],
  ["Error", new Error("e")],
  ["bytes", new Uint8Array(2)],
  ["hole", Array(1)],
  ["toJSON", { toJSON: () => 1 }],
  ["cycle", cycle()],
  ["abyss", abyss()],
  [
    "getter",
    {
      get broken(): never {
        throw new Error("sk-SECRET")
      }
    }
  ]
]

export const values: ReadonlyArray<Check> = [
  {
    name: "reads back every JSON equal: U+0000, lone surrogates, -0, __proto__, 200,000 characters",
    body: Effect.fnUntraced(function* (one, two) {
      const run = Journal.begin("values/odd", {
        context: { odd, nested: nested(40) },
        input: "\u0000 \ud800",
        agent: "\u0000\udfff%"
      })
      const decoded = foreign.map((wire) => Effect.fromResult(Contents.decode(wire)))
      const output = [...contents(), ...(yield* Effect.all(decoded))]
      const commits = [run.last(), ...Journal.turn(run, { input: odd, output, text: "\u0000\ud800" })]
      commits.push(run.commit("pause", [{ type: "paused", reason: "\u0000", metadata: odd }], { context: { odd } }))
      yield* put(one, commits)
      yield* loads(one, run.last())
      yield* loads(two, run.last())
      const records = commits.map(({ record }) => record)
      assert.deepEqual(yield* Stream.runCollect(two.read("values/odd")), records)
      const { context } = Option.getOrThrow(yield* two.load("values/odd"))
      assert.ok(Object.is(Reflect.get(Object(context["odd"]), "zero"), -0))
      assert.deepEqual(Object.keys(Object(context["odd"])), Object.keys(odd))
      assert.equal(Reflect.get({}, "polluted"), undefined)
    })
  },
  {
    name: "separates runs whose ids differ in any way, and lets no id lead out of the store",
    body: Effect.fnUntraced(function* (one, two) {
      const long = "values/" + "x".repeat(5_000)
      const ids = [
        "values/x'; DROP TABLE kernai_runs;--",
        "../../values/x",
        "..\\values\\x",
        "/etc/passwd",
        "file:///etc/passwd",
        "values/%2e%2e",
        "values/..",
        "values/a",
        "values/A",
        "values/\u0000",
        "values/%u0000",
        "values/%0000",
        "values/\ud800",
        "values/\udfff",
        "values/\ufffd",
        "values/é",
        "values/e\u0301",
        "values/run:t1/a%2Fb",
        "con",
        ".",
        long,
        `${long}y`,
        `${long.slice(0, -1)}\ud800`,
        `${long.slice(0, -1)}\udbff`
      ]
      for (const id of ids) yield* put(one, [Journal.begin(id, { agent: "values-ids" }).last()])
      const found = (yield* two.list({ agent: "values-ids" })).map(({ runId }) => runId)
      assert.deepEqual(found.toSorted(), ids.toSorted())
      for (const id of ids) {
        const run = Journal.begin(id, { agent: "values-ids" })
        yield* loads(two, run.last())
        yield* put(two, [run.commit("phase", [{ type: "turn_started", turnId: id }])])
        yield* loads(one, run.last())
      }
      yield* one.remove(ids)
      assert.deepEqual(yield* two.list({ agent: "values-ids" }), [])
    })
  },
  {
    name: "reads back a stop that waits, with all it may say or with nothing",
    body: Effect.fnUntraced(function* (one, two) {
      const run = Journal.begin("values/stops")
      const commits = [run.last(), ...Journal.turn(run)]
      for (const type of ["pause", "finish"] as const) {
        for (const deferred of [
          { type },
          { type, reason: "r" },
          { type, metadata: null },
          { type, metadata: { odd } }
        ]) {
          commits.push(run.commit("phase", [], { deferred }))
        }
      }
      yield* put(one, commits)
      for (const store of [one, two]) yield* loads(store, run.last())
      const records = commits.map(({ record }) => record)
      assert.deepEqual(yield* Stream.runCollect(two.read("values/stops")), records)
    })
  },
  {
    name: "refuses values that are not JSON, names their path, and writes nothing of them",
    body: Effect.fnUntraced(function* (one, two) {
      const begun = Journal.begin("values/misfit")
      yield* put(one, [begun.last()])
      for (const [name, value] of misfits()) {
        const misfit = { a: [value] } as JsonObject
        const run = Journal.begin("values/misfit")
        const { record, state } = run.commit("pause", [{ type: "paused", reason: name, metadata: misfit }])
        const error = yield* refused(one.append([record], state))
        assert.ok(error instanceof StoreError, `${name}: ${error}`)
        assert.equal(error.reason, "invalid", name)
        assert.ok(!error.message.includes("sk-SECRET"))
        const fresh = Journal.begin(`values/misfit/${name}`, { context: misfit }).last()
        const unborn = yield* refused(put(one, [fresh]))
        assert.ok(unborn instanceof StoreError, `${name}: ${unborn}`)
        assert.deepEqual(yield* two.load(`values/misfit/${name}`), Option.none())
      }
      const run = Journal.begin("values/misfit")
      const data = Contents.data({ nan: Number.NaN })
      const told = run.commit("resume", [], {
        resolved: [{ callId: "c", name: "t", kind: "skill", input: null, output: [data] }]
      })
      const error = yield* refused(put(one, [told]))
      assert.ok(
        error instanceof StoreError && error.detail.includes("/delta/resolved/0/output/0/data/nan"),
        error.message
      )
      yield* loads(two, begun.last())
      yield* put(two, Journal.turn(begun))
      yield* loads(one, begun.last())
    })
  }
]

function polluting(): JsonObject {
  return JSON.parse('{"__proto__": {"polluted": 1}}')
}

function cycle(): unknown {
  const list: Array<unknown> = []
  list.push(list)
  return list
}

function abyss(): unknown {
  let value: unknown = 1
  for (let depth = 0; depth < 20_000; depth++) value = [value]
  return value
}
