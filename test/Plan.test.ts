import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import * as Limits from "../src/Limits.ts"
import * as Plan from "../src/Plan.ts"
import { plan, task } from "./support/plans.ts"
import { cases } from "./support/property.ts"
import { times } from "./support/longRun.ts"

const accept = (raw: unknown): Plan.Plan => Result.getOrThrow(Plan.validate(raw))

const refuse = (raw: unknown, limits?: Limits.Limits): Plan.PlanRejected => {
  const result = Plan.validate(raw, limits)
  return Result.isFailure(result) ? result.failure : assert.fail("the plan was accepted")
}

/** A chain in which every task waits for the one before it, or for the one after it. */
const chain = (size: number, direction: 1 | -1) => ({
  tasks: Array.from({ length: size }, (_, at) => ({ id: `t${at}`, input: "x", depends_on: [`t${at - direction}`] }))
})

const nest = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`

describe("Plan.validate", () => {
  it("accepts JSON text and a decoded object alike (BP-48)", () => {
    const value = {
      goal: "ship",
      strategy: "parallel",
      tasks: [
        { id: "a", input: "x", parallel: true },
        { id: "b", input: "y", depends_on: ["a"] }
      ]
    }
    const expected: Plan.Plan = {
      goal: "ship",
      strategy: "parallel",
      tasks: [
        { id: "a", input: "x", parallel: true, dependsOn: [], status: "pending" },
        { id: "b", input: "y", parallel: false, dependsOn: ["a"], status: "pending" }
      ]
    }
    assert.deepStrictEqual(accept(value), expected)
    assert.deepStrictEqual(accept(JSON.stringify(value)), expected)
  })

  it("strips NUL, TAB, LF, VT, FF, CR and SPACE around the text and no other white space (BP-49, Trap 1)", () => {
    const text = `{"tasks":[{"id":"a","input":"x"}]}`
    assert.strictEqual(accept(`\0\t\n\v\f\r ${text} \r\f\v\n\t\0`).tasks.length, 1)
    assert.strictEqual(refuse("\0\t\n\v\f\r ").reason, "blank")
    assert.strictEqual(refuse(`\u00a0${text}`).reason, "invalid_json")
    assert.strictEqual(refuse(`\ufeff${text}`).reason, "invalid_json")
    assert.strictEqual(refuse("\u00a0").reason, "invalid_json")
  })

  it.each<[reason: Plan.Reason, raw: unknown, says: string]>([
    ["not_a_hash", null, "not null"],
    ["not_a_hash", undefined, "not a undefined"],
    ["not_a_hash", 42, "not a number"],
    ["not_a_hash", [{ id: "a", input: "x" }], "not a list"],
    ["not_a_hash", "[]", "not a list"],
    ["not_a_hash", "17", "not a number"],
    ["not_a_hash", "true", "not a boolean"],
    ["not_a_hash", "null", "not null"],
    ["not_a_hash", `"first search, then write"`, "not a string"],
    ["blank", "", "empty"],
    ["blank", " \n ", "empty"],
    ["invalid_json", "First I search.", "not valid JSON"],
    ["invalid_json", '```json\n{"tasks":[{"id":"a","input":"x"}]}\n```', "without a code fence"],
    ["invalid_json", '{"tasks":[{"id":"a","input":"x"}]} done', "text around it"],
    ["invalid_json", '// why\n{"tasks":[{"id":"a","input":"x"}]}', "comments"],
    ["invalid_json", '{"tasks":[{"id":"a","input":"x"},]}', "not valid JSON"],
    ["no_tasks", "{}", `"tasks": [`],
    ["no_tasks", '{"tasks":{"id":"a","input":"x"}}', `"tasks": [`],
    ["empty_tasks", '{"tasks":[]}', "at least one"],
    [
      "all_tasks_invalid",
      '{"tasks":[1,null,"a",[],{"id":"a"},{"input":"x"},{"id":1,"input":"x"}]}',
      `"id" and an "input"`
    ],
    ["all_tasks_invalid", '{"tasks":[{"id":" \\t","input":"x"},{"id":"a","input":"\\n"}]}', "not blank"],
    ["duplicate_ids", '{"tasks":[{"id":"a","input":"x"},{"id":"b","input":"x"},{"id":"a","input":"y"}]}', `: "a".`],
    [
      "cyclic",
      '{"tasks":[{"id":"a","input":"x","depends_on":["b"]},{"id":"b","input":"x","depends_on":["a"]}]}',
      `"a", "b"`
    ]
  ])("refuses with %s what is %j, and says what to change (BP-49, BP-55, W-5, W-35)", (reason, raw, says) => {
    const rejected = refuse(raw)
    assert.strictEqual(rejected.reason, reason)
    assert.include(rejected.message, says)
  })

  it("keeps valid tasks as written and drops the others (BP-50)", () => {
    const { tasks } = accept({
      tasks: [{ id: " a ", input: " x\n", extra: 1 }, { id: "b" }, 7, { id: "\u00a0", input: "y" }]
    })
    assert.deepStrictEqual(
      tasks.map(({ id, input }) => [id, input]),
      [
        [" a ", " x\n"],
        ["\u00a0", "y"]
      ]
    )
  })

  it("treats a task as parallel only for the JSON value true (BP-51)", () => {
    const { tasks } = accept({
      tasks: [true, false, "true", 1, null, {}].map((parallel, at) => ({ id: `${at}`, input: "x", parallel }))
    })
    assert.deepStrictEqual(
      tasks.map(({ parallel }) => parallel),
      [true, false, false, false, false, false]
    )
  })

  it("reads dependencies from a list or a single string, keeps duplicates, and drops unknown ids (BP-51, BP-52)", () => {
    const { tasks } = accept({
      tasks: [
        { id: "a", input: "x", depends_on: ["a", "ghost", "dropped"] },
        { id: "b", input: "x", depends_on: "a" },
        { id: "c", input: "x", depends_on: ["b", "", 1, null, "a", "b", " a"] },
        { id: "d", input: "x", depends_on: { a: 1 } },
        { id: "e", input: "x", depends_on: "" },
        { id: "dropped", input: "" }
      ]
    })
    assert.deepStrictEqual(
      tasks.map(({ dependsOn }) => dependsOn),
      [[], ["a"], ["b", "a", "b"], [], []]
    )
  })

  it("detects cycles only after unknown dependencies are dropped (BP-52)", () => {
    const { tasks } = accept({
      tasks: [
        { id: "a", input: "x", depends_on: ["a", "b"] },
        { id: "b", input: "", depends_on: ["a"] }
      ]
    })
    assert.deepStrictEqual(tasks, [{ id: "a", input: "x", parallel: false, dependsOn: [], status: "pending" }])
  })

  it("treats any other strategy as mixed, and converts any goal to text (BP-53)", () => {
    const tasks = [{ id: "a", input: "x" }]
    const strategies = ["parallel", "sequential", "mixed", "Parallel", " mixed ", null, 1, undefined]
    assert.deepStrictEqual(
      strategies.map((strategy) => accept({ strategy, tasks }).strategy),
      ["parallel", "sequential", "mixed", "mixed", "mixed", "mixed", "mixed", "mixed"]
    )
    const goals = ["g", "", null, undefined, 12, true, ["a", 1], { a: { b: "c" } }]
    assert.deepStrictEqual(
      goals.map((goal) => accept({ goal, tasks }).goal),
      ["g", "", "", "", "12", "true", `["a",1]`, `{"a":{"b":"c"}}`]
    )
  })

  it("keeps a known status, and pending() resets it (BP-54)", () => {
    const read = accept({
      tasks: ["running", "done", "pending", "DONE", 1, null].map((status, at) => ({ id: `${at}`, input: "x", status }))
    })
    assert.deepStrictEqual(
      read.tasks.map(({ status }) => status),
      ["running", "done", "pending", "pending", "pending", "pending"]
    )
    assert.isTrue(Plan.pending(read).tasks.every(({ status }) => status === "pending"))
  })

  it("keeps the order of ids that plain objects would reorder, and pollutes no prototype (Trap 3, S-10)", () => {
    const ids = ["10", "2", "__proto__", "constructor", "toString", "-1"]
    const tasks = ids.map((id, at) => ({ id, input: "x", depends_on: ids.slice(0, at) }))
    const text = `{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"tasks":${JSON.stringify(tasks)}}`
    const read = accept(text)
    assert.deepStrictEqual(
      read.tasks.map(({ id }) => id),
      ids
    )
    assert.deepStrictEqual(Plan.completionOrder(read), ids)
    assert.isUndefined(Reflect.get({}, "polluted"))
    assert.strictEqual(refuse('{"__proto__":{"tasks":[{"id":"a","input":"x"}]}}').reason, "no_tasks")
    assert.strictEqual(refuse(Object.create({ tasks: [{ id: "a", input: "x" }] })).reason, "no_tasks")
  })

  it("accepts 100 levels of nesting and rejects the next as invalid_json (BP-49)", () => {
    const text = (depth: number) => `{"tasks":[{"id":"a","input":"x"}],"x":${nest(depth - 1)}}`
    assert.strictEqual(accept(text(100)).tasks.length, 1)
    const rejected = refuse(text(101))
    assert.strictEqual(rejected.reason, "invalid_json")
    assert.include(rejected.message, "deeper than 100 levels")
  })

  it("ignores brackets inside strings, escaped or not", () => {
    const input = `"${"[{".repeat(200)}`
    const text = `{"tasks":[{"id":"a","input":${JSON.stringify(input)}},{"id":"b","input":"\\\\"}]}`
    assert.deepStrictEqual(
      accept(text).tasks.map((task) => task.input),
      [input, "\\"]
    )
  })

  it("rejects two million brackets without parsing them (S-12)", () => {
    assert.strictEqual(refuse(nest(1_000_000)).reason, "invalid_json")
    assert.strictEqual(refuse('"'.repeat(1_000_001)).reason, "invalid_json")
  })

  it("limits the length of the text and the number of tasks", () => {
    const text = JSON.stringify(chain(3, 1))
    assert.strictEqual(refuse(text, { ...Limits.defaults, replyLength: text.length - 1 }).reason, "too_large")
    assert.strictEqual(refuse(chain(Plan.maxTasks + 1, 1)).reason, "too_large")
  })

  it("returns a refusal, not an exception, for unreadable values (R-22)", () => {
    const circular: Record<string, unknown> = {}
    circular["self"] = circular
    const tasks = [{ id: "a", input: "x" }]
    const thrower = (): never => {
      throw new Error("boom")
    }
    const values = [
      { tasks, goal: circular },
      { tasks, goal: 10n },
      { tasks, goal: { toJSON: thrower } },
      { tasks, goal: JSON.parse(nest(200_000)) },
      Object.defineProperty({}, "tasks", { get: thrower }),
      new Proxy({}, { getOwnPropertyDescriptor: thrower })
    ]
    assert.deepStrictEqual(
      values.map((value) => refuse(value).reason),
      values.map(() => "not_a_hash")
    )
  })

  it("follows chains of thousands of tasks in either direction, and finds a cycle of that length (W-11, R-18)", () => {
    const size = times(20_000, 5_000)
    for (const direction of [1, -1] as const) {
      const read = accept(chain(size, direction))
      const order = Plan.completionOrder(read)
      assert.deepStrictEqual([order.length, order[0]], [size, direction === 1 ? "t0" : `t${size - 1}`])
    }
    const ring = chain(size, 1)
    ring.tasks[0]?.depends_on.push(`t${size - 1}`)
    assert.strictEqual(refuse(ring).reason, "cyclic")
  })

  it("keeps a refusal short, whatever ids it mentions (W-35)", () => {
    const id = (at: number) => `${at}${"x".repeat(10_000)}`
    const tasks = Array.from({ length: 50 }, (_, at) => ({ id: id(at), input: "x", depends_on: [id((at + 1) % 50)] }))
    const cyclic = refuse({ tasks })
    assert.strictEqual(cyclic.reason, "cyclic")
    assert.include(cyclic.message, "and 45 more")
    assert.isBelow(cyclic.message.length, 600)
    assert.isBelow(refuse({ tasks: [...tasks, ...tasks] }).message.length, 600)
    assert.isBelow(refuse("x".repeat(100_000)).message.length, 600)
  })

  it("names only the tasks of the cycle, not those that depend on it", () => {
    const rejected = refuse({
      tasks: [
        { id: "waits", input: "x", depends_on: ["b"] },
        { id: "a", input: "x", depends_on: ["free", "c"] },
        { id: "b", input: "x", depends_on: ["a"] },
        { id: "c", input: "x", depends_on: ["free", "b"] },
        { id: "free", input: "x" }
      ]
    })
    assert.include(rejected.message, `"b", "a", "c".`)
    assert.notMatch(rejected.message, /waits|free/)
  })

  it.prop(
    "never throws, and every accepted plan runs to completion",
    [Schema.Json],
    ([value]) => {
      const result = Plan.validate({ tasks: [value, { id: "a", input: "x" }] })
      if (Result.isSuccess(result)) {
        assert.strictEqual(Plan.completionOrder(result.success).length, result.success.tasks.length)
      }
      Plan.validate(value)
      Plan.validate(JSON.stringify(value))
    },
    cases()
  )
})

describe("Plan.nested", () => {
  it("tells a sub-agent how to proceed instead (BP-47, W-35)", () => {
    assert.strictEqual(Plan.nested.reason, "nested")
    assert.include(Plan.nested.message, "sub-agent")
  })
})

describe("Plan.isProse", () => {
  it("distinguishes thinking aloud from a faulty plan (W-34)", () => {
    for (const text of ["First I search.", "1. search\n2. write", "- a\n- b", `"quoted" and more`, "\u00a0", "nulls"]) {
      assert.isTrue(Plan.isProse(text), text)
    }
    for (const text of [
      "",
      " \n",
      "{",
      ' {"tasks": oops',
      "[1,",
      "```json\n{}\n```",
      "// c\n{}",
      "/* */",
      "\ufeff{}",
      "42",
      "null",
      '"a"'
    ]) {
      assert.isFalse(Plan.isProse(text), text)
    }
  })
})

describe("Plan.isParallel", () => {
  it("prefers the strategy over the task's own flag (BP-56)", () => {
    const flags = [true, false]
    const of = (strategy: Plan.Strategy) => flags.map((flag) => Plan.isParallel(strategy, task("a", [], flag)))
    assert.deepStrictEqual(of("parallel"), [true, true])
    assert.deepStrictEqual(of("sequential"), [false, false])
    assert.deepStrictEqual(of("mixed"), [true, false])
  })
})

describe("Plan.waves", () => {
  it("puts parallel tasks of a wave first, each group in plan order (BP-57)", () => {
    const mixed = plan([
      task("s1"),
      task("p1", [], true),
      task("s2", ["p2"]),
      task("s3"),
      task("p2", [], true),
      task("p3", ["s1", "p2"], true)
    ])
    assert.deepStrictEqual(Plan.waves(mixed), [
      { parallel: ["p1", "p2"], sequential: ["s1", "s3"] },
      { parallel: ["p3"], sequential: ["s2"] }
    ])
    assert.deepStrictEqual(Plan.completionOrder(mixed), ["p1", "p2", "s1", "s3", "p3", "s2"])
  })

  it("treats all tasks as pending, whatever status the plan gives (BP-54)", () => {
    const claimed = plan([
      { ...task("a"), status: "done" },
      { ...task("b", ["a"]), status: "running" }
    ])
    assert.deepStrictEqual(Plan.completionOrder(claimed), ["a", "b"])
  })
})

describe("Plan.toJson", () => {
  it("writes wire names and round-trips", () => {
    const value = plan([task("a", [], true), { ...task("b", ["a"]), status: "running" }], "parallel")
    assert.deepStrictEqual(Plan.toJson(value).tasks[1], {
      id: "b",
      input: "do b",
      parallel: false,
      depends_on: ["a"],
      status: "running"
    })
    assert.deepStrictEqual(accept(JSON.stringify(Plan.toJson(value))), value)
  })
})
