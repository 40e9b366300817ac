/**
 * plan.json: which plans are accepted, as what, and why others are refused (BP-48 to BP-55).
 *
 * A disputed vector records a detail of the original's language or its crash. Ours
 * must then be one of the readings the rules allow, never an exception.
 */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { isRecord, parseJson } from "../../src/kit/json.ts"
import * as Plan from "../../src/Plan.ts"
import * as Vectors from "../support/vectors.ts"

interface Vector {
  readonly id: string
  readonly category: string
  readonly raw?: string
  readonly value?: unknown
  readonly note?: string
  readonly disputed?: string
  readonly expected: {
    readonly ok?: boolean
    readonly plan?: ReturnType<typeof Plan.toJson>
    readonly reason?: string
    readonly raises?: string
  }
}

const file = Vectors.load<{ readonly vectors: ReadonlyArray<Vector> }>("plan", {
  vectors: [
    {
      ...Vectors.about,
      raw: true,
      value: true,
      expected: { ok: true, plan: true, reason: true, raises: true, message: true }
    }
  ]
})
const tally = Vectors.tally("plan.json")

/** Does the plan, as it was given, use an id twice? */
const repeatsAnId = ({ raw = "", value }: Vector): boolean => {
  const given = value ?? Result.getOrUndefined(parseJson(raw, 100))
  if (!isRecord(given) || !Array.isArray(given["tasks"])) return false
  const ids = given["tasks"].map((task: unknown) => (isRecord(task) ? task["id"] : task))
  return new Set(ids).size < ids.length
}

/** The recorded reason, or one that a rule of ours puts in its place: BP-55, W-5, strict JSON (BP-69). */
const reasons = (vector: Vector): ReadonlyArray<string | undefined> => {
  const { ok, reason, raises } = vector.expected
  if (raises !== undefined) return ["not_a_hash"]
  if (repeatsAnId(vector)) return [reason, "duplicate_ids"]
  if (vector.disputed === undefined) return [reason]
  return ok === true ? ["invalid_json"] : [reason, "not_a_hash"]
}

describe("plan.json", () => {
  for (const vector of file.vectors) {
    if (!("raw" in vector) && !("value" in vector)) {
      tally.skip(vector.id)
      continue
    }
    it(`${vector.id}: ${vector.category}${vector.note === undefined ? "" : `, ${vector.note}`}`, () => {
      tally.ran()
      const result = Plan.validate("raw" in vector ? vector.raw : vector.value)
      if (Result.isFailure(result)) return assert.include(reasons(vector), result.failure.reason)
      const { goal, ...ours } = Plan.toJson(result.success)
      const { goal: recorded, ...theirs } = vector.expected.plan ?? { goal: "refused" }
      assert.deepStrictEqual<unknown>(ours, theirs)
      // Disputed goals are text forms of values that are no text: ours is their JSON (BP-53).
      if (vector.disputed === undefined) assert.strictEqual(goal, recorded)
    })
  }
  tally.report()
})
