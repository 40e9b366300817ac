/** Runs usage.json: sums, conversions and budgets (CP-14, CP-15). */
import { assert, describe, it } from "@effect/vitest"
import { Equal, Result, Schema } from "effect"
import { Budget, type StreamPart, Usage } from "kernai"
import * as Vectors from "../support/vectors.ts"

type Counts = { readonly [name: string]: number }
interface UsageVector {
  readonly id: string
  readonly title?: string
  readonly add?: ReadonlyArray<Counts>
  readonly equalSums?: readonly [ReadonlyArray<Counts>, ReadonlyArray<Counts>]
  readonly decode?: unknown
  readonly from?: string
  readonly value?: unknown
  readonly expect?: null | (Counts & { readonly error?: string; readonly path?: string })
}
interface BudgetVector {
  readonly id: string
  readonly execution?: unknown
  readonly budget?: unknown
  readonly calls?: ReadonlyArray<number>
  readonly spawn?: unknown
  readonly acquire?: ReadonlyArray<string>
  readonly release?: ReadonlyArray<string>
  readonly then?: ReadonlyArray<string>
  readonly headcount?: number
  readonly expect: unknown
}

const file = Vectors.load<{
  readonly vectors: ReadonlyArray<UsageVector>
  readonly budgets?: ReadonlyArray<BudgetVector>
}>("usage", {
  vectors: [{ ...Vectors.about, add: true, equalSums: true, decode: true, from: true, value: true, expect: true }],
  budgets: [
    {
      ...Vectors.about,
      ...Vectors.these("execution", "budget", "calls", "spawn", "acquire", "release", "then", "headcount", "expect")
    }
  ]
})
const tally = Vectors.tally("usage.json")

const read = (counts: unknown): Usage.Usage => Result.getOrThrow(Usage.decode(counts))
const told = (usage: Usage.Usage) => ({ ...Usage.encode(usage), total_tokens: Usage.total(usage) })

/** What is expected, all told: a missing field is zero, and a total that is not given is the sum. */
const whole = (expect: object | null | undefined) => {
  const counts = { ...Usage.encode(Usage.zero), ...expect }
  return { total_tokens: counts.input_tokens + counts.output_tokens, ...counts }
}

const convert = (value: unknown): Usage.Usage | undefined | "unknown shape" => {
  if (value === null || typeof value !== "object") return undefined
  if ("inputTokens" in value || "outputTokens" in value) {
    return Usage.fromAi({ inputTokens: {}, outputTokens: {}, ...(value as Partial<StreamPart.ReportedUsage>) })
  }
  return Object.keys(value).every((name) => /^(prompt|completion|total)_?tokens$/i.test(name))
    ? Usage.fromPromptCompletion(value)
    : "unknown shape"
}

/** Does what the expectation names agree with what happened? Words the runner does not know make it a skip. */
const agrees = (expect: unknown, happened: { readonly [name: string]: unknown }): boolean | undefined => {
  if (typeof expect === "string") return (happened["error"] ?? "ok") === expect
  if (typeof expect !== "object" || expect === null) return undefined
  const entries = Object.entries(expect)
  if (entries.some(([name]) => !(name in happened))) return undefined
  return entries.every(([name, value]) => Equal.equals(happened[name], value))
}

const runCalls = (vector: BudgetVector, calls: ReadonlyArray<number>) => {
  const budget = Schema.decodeUnknownSync(Budget.ExecutionBudget)(vector.execution ?? vector.budget)
  let spent = Budget.nothing
  const stop = (where: string, call: number, error: Budget.BudgetExhaustedError) => ({
    error: error._tag,
    dimension: error.dimension,
    used: error.used,
    limit: error.limit,
    beforeCall: where === "beforeCall" ? call : null,
    afterCall: where === "afterCall" ? call : null
  })
  for (const [index, tokens] of calls.entries()) {
    const before = Budget.beforeCall(budget, spent)
    if (before !== undefined) return stop("beforeCall", index + 1, before)
    spent = Budget.add(spent, { tokens, costUsd: 0 })
    const after = Budget.afterCall(budget, spent)
    if (after !== undefined) return stop("afterCall", index + 1, after)
  }
  return { used: spent.tokens, beforeCall: null, afterCall: null }
}

const runSpawns = (vector: BudgetVector, acquire: ReadonlyArray<string>) => {
  const budget = Schema.decodeUnknownSync(Budget.SpawnBudget)(vector.spawn)
  const children = new Set<string>()
  const spawn = (names: ReadonlyArray<string>) => {
    for (const name of names) {
      const denied = Budget.beforeSpawn(budget, { parentRun: "root", depth: 0, agents: 1 + children.size })
      if (denied !== undefined) return denied
      children.add(name)
    }
    return undefined
  }
  const first = spawn(acquire)
  for (const name of vector.release ?? []) children.delete(name)
  const denied = vector.then === undefined ? first : spawn(vector.then)
  return {
    ...(denied === undefined ? {} : { error: denied._tag, limit: denied.limit, parent_run: denied.parentRun }),
    headcount: 1 + children.size
  }
}

describe("usage.json", () => {
  for (const vector of file.vectors) {
    const { id, title, expect } = vector
    const name = `${id}: ${title ?? ""}`
    const test = (body: () => void) =>
      it(name, () => {
        body()
        tally.ran()
      })
    if (vector.add !== undefined) {
      const { add } = vector
      test(() => assert.deepStrictEqual(told(Usage.Reducer.combineAll(add.map(read))), whole(expect)))
    } else if (vector.equalSums !== undefined) {
      const [left, right] = vector.equalSums
      test(() =>
        assert.deepStrictEqual(Usage.Reducer.combineAll(left.map(read)), Usage.Reducer.combineAll(right.map(read)))
      )
    } else if ("decode" in vector) {
      test(() => {
        const decoded = Usage.decode(vector.decode)
        if (expect?.error === undefined) {
          assert.deepStrictEqual(told(Result.getOrThrow(decoded)), whole(expect))
        } else {
          assert.isTrue(Result.isFailure(decoded))
          if (Result.isFailure(decoded)) {
            assert.strictEqual(decoded.failure._tag, expect.error)
            if (expect.path !== undefined) assert.strictEqual(decoded.failure.path, expect.path)
          }
        }
      })
    } else if (vector.from !== undefined && convert(vector.value) !== "unknown shape") {
      test(() => {
        const usage = convert(vector.value)
        if (expect === null) assert.isUndefined(usage)
        else {
          assert.isObject(usage)
          if (typeof usage === "object") assert.deepStrictEqual(told(usage), { ...told(usage), ...expect })
        }
      })
    } else tally.skip(id)
  }

  for (const vector of file.budgets ?? []) {
    const happened =
      vector.calls !== undefined && (vector.execution ?? vector.budget) !== undefined
        ? runCalls(vector, vector.calls)
        : vector.acquire !== undefined && vector.spawn !== undefined
          ? runSpawns(vector, vector.acquire)
          : undefined
    const verdict = happened === undefined ? undefined : agrees(vector.expect, happened)
    if (happened === undefined || verdict === undefined) {
      tally.skip(vector.id)
      continue
    }
    it(vector.id, () => {
      assert.isTrue(verdict, `expected ${JSON.stringify(vector.expect)}, got ${JSON.stringify(happened)}`)
      if (vector.headcount !== undefined) assert.strictEqual(Reflect.get(happened, "headcount"), vector.headcount)
      tally.ran()
    })
  }
  tally.report()
})
