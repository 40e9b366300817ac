/**
 * Checks of interpreters: what programs return and call, what they cannot reach, that they are repeatable, and how they
 * fail.
 */

import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as assert from "./assert.ts"
import type {
  Code,
  CodeCall,
  CodeFailed,
  CodeInterpreter,
  CodeLimits,
  CodeResult,
  CodeStep
} from "../../CodeInterpreter.ts"

/** A sentence, and its check of an interpreter. */
interface Check {
  readonly name: string
  readonly body: (interpreter: CodeInterpreter["Service"]) => Effect.Effect<void, unknown, Scope.Scope>
}

const limits: CodeLimits = {
  sourceBytes: 64 * 1024,
  memoryBytes: 16 * 1024 * 1024,
  stackBytes: 128 * 1024,
  cpuTime: Duration.seconds(5),
  calls: 20,
  outputLength: 100_000,
  logLength: 100
}

const codeOf = (source: string, more?: Partial<CodeLimits>): Code => ({
  source,
  functions: ["add", "fail"],
  now: 1_700_000_000_000,
  seed: 7,
  limits: { ...limits, ...more }
})

/** The functions of these programs: one adds, the other fails. */
const answer = ({ input, name }: CodeCall): CodeResult =>
  name === "add"
    ? { _tag: "Value", value: Array.isArray(input) ? input.reduce<number>((sum, one) => sum + Number(one), 0) : input }
    : { _tag: "Error", name: "CardDeclined", message: "no funds" }

interface Ended {
  /** The names of the calls of each step. */
  readonly steps: ReadonlyArray<ReadonlyArray<string>>
  readonly end: Result.Result<Extract<CodeStep, { readonly _tag: "Returned" }>, CodeFailed>
}

/** Runs a program to its end. */
const run = Effect.fnUntraced(function* (
  { open }: CodeInterpreter["Service"],
  source: string,
  more?: Partial<CodeLimits>
) {
  const execution = yield* open(codeOf(source, more))
  const steps: Array<ReadonlyArray<string>> = []
  let results: ReadonlyArray<CodeResult> = []
  for (;;) {
    const step = yield* Effect.result(execution.next(results))
    if (Result.isFailure(step)) return { steps, end: Result.fail(step.failure) } satisfies Ended
    if (step.success._tag === "Returned") return { steps, end: Result.succeed(step.success) } satisfies Ended
    steps.push(step.success.calls.map(({ name }) => name))
    results = step.success.calls.map(answer)
  }
})

const returned = ({ end }: Ended) => {
  assert.ok(Result.isSuccess(end), `it failed: ${Result.isFailure(end) ? end.failure.message : ""}`)
  return end.success
}

const failure = ({ end }: Ended) => {
  assert.ok(Result.isFailure(end), `it returned ${Result.isSuccess(end) ? JSON.stringify(end.success.value) : ""}`)
  return end.failure
}

/** Checks the value that a program returns. */
const gives = (name: string, source: string, value: unknown): Check => ({
  name,
  body: (interpreter) => Effect.map(run(interpreter, source), (ended) => assert.deepEqual(returned(ended).value, value))
})

/** Checks the reason for which a program fails. */
const fails = (name: string, reason: CodeFailed["reason"], source: string, more?: Partial<CodeLimits>): Check => ({
  name,
  body: (interpreter) =>
    Effect.map(run(interpreter, source, more), (ended) => assert.equal(failure(ended).reason, reason))
})

const values: ReadonlyArray<Check> = [
  gives("returns JSON", `return { a: [1, "2", null, true], b: { c: 0.5 } }`, {
    a: [1, "2", null, true],
    b: { c: 0.5 }
  }),
  gives("returns null for a program that returns nothing", `const a = 1`, null),
  gives("accepts types of TypeScript", `const a: number = 1; type B = { c: string }; return a as number`, 1),
  gives("passes the results of calls", `return [await add([1, 2]), await add([3])]`, [3, 3]),
  gives(
    "lets a program catch the error of a call",
    `try { await fail({}) } catch (error) { return [error.name, error.message, error instanceof Error] }`,
    ["CardDeclined", "no funds", true]
  ),
  gives(
    "lets a program reach nothing of the host",
    `return ["process", "require", "fetch", "setTimeout", "Deno", "Bun", "module", "performance", "WeakRef"]
      .filter((name) => typeof globalThis[name] !== "undefined")`,
    []
  ),
  gives("refuses to import", `return await import("node:fs").then(() => "imported", () => "refused")`, "refused"),
  gives(
    "shows the given time, in UTC, however it is asked for",
    `const again = new (new Date().constructor)()
     return [Date.now(), new Date().getTime(), again.getTime(), new Date().getHours(), Date().slice(0, 15)]`,
    [1_700_000_000_000, 1_700_000_000_000, 1_700_000_000_000, 22, "Tue Nov 14 2023"]
  )
]

const failures: ReadonlyArray<Check> = [
  fails("fails a program that is not JavaScript", "syntax", `const = 1`),
  fails("fails a program that throws", "thrown", `throw new Error("no")`),
  fails("fails a program that throws what is no error", "thrown", `throw { get message() { throw 1 } }`),
  fails("fails a program that waits forever", "stuck", `await new Promise(() => {})`),
  fails("ends a loop", "cpu", `for (;;);`, { cpuTime: Duration.millis(100) }),
  fails("ends a loop of promises", "cpu", `for (;;) await null`, { cpuTime: Duration.millis(100) }),
  fails("ends a loop that catches everything", "cpu", `for (;;) try { for (;;); } catch {}`, {
    cpuTime: Duration.millis(100)
  }),
  fails(
    "ends a program that fills the memory",
    "memory",
    `const all = []; for (;;) all.push(new ArrayBuffer(100_000))`
  ),
  fails(
    "ends a program whose values together are larger than its memory",
    "memory",
    `const all = []; for (let i = 0; i < 64; i++) all.push(new Uint8Array(1_000_000).fill(1)); return all.length`
  ),
  gives(
    "lets a program use its memory",
    `const all = []; for (let i = 0; i < 4; i++) all.push(new Uint8Array(1_000_000).fill(1)); return all.length`,
    4
  ),
  fails("ends a recursion", "stack", `const f = () => f() + 1; return f()`),
  fails("ends a program with too many calls", "calls", `for (let i = 0; i < 30; i++) add([i])`),
  fails("refuses a result that is too long", "output", `return "x".repeat(200_000)`),
  fails("refuses inputs that are too long", "output", `await add(["x".repeat(200_000)])`),
  fails(
    "refuses a result that nests too deep",
    "output",
    `let a = 0; for (let i = 0; i < 5000; i++) a = [a]; return a`
  ),
  {
    name: "names the line of an error, and keeps what was logged",
    body: (interpreter) =>
      Effect.map(run(interpreter, `console.log("begins", { a: 1 })\n\nawait fail({})`), (ended) => {
        const { detail, line, log, text } = failure(ended)
        assert.deepEqual([detail, line, text], ["CardDeclined: no funds", 3, "await fail({})"])
        assert.equal(log?.trim(), `begins {"a":1}`)
      })
  },
  {
    name: "leaves out what is logged beyond its limit",
    body: (interpreter) =>
      Effect.map(run(interpreter, `for (let i = 0; i < 1000; i++) console.log(i)`), (ended) =>
        assert.ok(returned(ended).log.length <= limits.logLength + 1)
      )
  }
]

const busy = `const all = []
for (let i = 0; i < 3; i++) all.push(...(await Promise.all([add([i]), add([Math.random()])])))
return all`

const repeats: ReadonlyArray<Check> = [
  {
    name: "returns the calls that wait together as one step, in their order, with their lines",
    body: Effect.fnUntraced(function* ({ open }) {
      const execution = yield* open(codeOf(`const all = [add([1]),\nfail({})]\nawait Promise.allSettled(all)`))
      const step = yield* execution.next([])
      assert.deepEqual(step, {
        _tag: "Calls",
        calls: [
          { name: "add", input: [1], line: 1 },
          { name: "fail", input: {}, line: 2 }
        ]
      })
    })
  },
  {
    name: "makes the calls that a program does not wait for before it ends",
    body: Effect.fnUntraced(function* (interpreter) {
      const ended = yield* run(interpreter, `add([1]).then(() => add([2])); return "done"`)
      assert.deepEqual([ended.steps, returned(ended).value], [[["add"], ["add"]], "done"])
      const thrown = yield* run(interpreter, `add([1]); throw new Error("no")`)
      assert.deepEqual([thrown.steps, failure(thrown).reason], [[["add"]], "thrown"])
    })
  },
  {
    name: "makes the same calls whenever it runs",
    body: Effect.fnUntraced(function* (interpreter) {
      const first = yield* run(interpreter, busy)
      const second = yield* run(interpreter, busy)
      assert.deepEqual(
        first.steps,
        [1, 2, 3].map(() => ["add", "add"])
      )
      assert.deepEqual(returned(second), returned(first))
    })
  },
  {
    name: "continues after a step was interrupted",
    body: Effect.fnUntraced(function* (interpreter) {
      const source = `const a = await add([1]); let n = 0; for (let i = 0; i < 3e6; i++) n += i % 2; return [a, n]`
      const execution = yield* interpreter.open(codeOf(source))
      yield* execution.next([])
      const results: ReadonlyArray<CodeResult> = [{ _tag: "Value", value: 1 }]
      const fiber = yield* Effect.forkChild(execution.next(results))
      yield* Effect.yieldNow
      yield* Fiber.interrupt(fiber)
      assert.deepEqual(yield* execution.next(results), { _tag: "Returned", value: [1, 1_500_000], log: "" })
    })
  },
  {
    name: "runs many programs at once, each with its own globals",
    body: (interpreter) =>
      Effect.map(
        Effect.forEach(
          Array.from({ length: 12 }, (_, index) => index),
          (index) => run(interpreter, `globalThis.own = ${index}; await add([1]); await add([2]); return own`),
          { concurrency: "unbounded" }
        ),
        (all) =>
          assert.deepEqual(
            all.map((ended) => returned(ended).value),
            all.map((_, index) => index)
          )
      )
  }
]

/** All checks, in the order of their sentences. */
export const codeChecks: ReadonlyArray<Check> = [...values, ...failures, ...repeats]
