import { assert, describe, it } from "@effect/vitest"
import { Cron, Option, Result } from "effect"
import { nextTime } from "../../../src/internal/kernel/cronSchedule.ts"

/** The next times of an expression in Berlin, as UTC without the year. */
const times = (text: string, from: string, count: number): ReadonlyArray<string> => {
  const cron = Result.getOrThrow(Cron.parse(text, "Europe/Berlin"))
  const found: Array<string> = []
  let at = Date.parse(from)
  for (let i = 0; i < count; i++) {
    at = Option.getOrThrow(nextTime(cron, text, at))
    found.push(new Date(at).toISOString().slice(5, 19))
  }
  return found
}

describe("the times of a schedule", () => {
  it("of minutes run through the hour that is repeated in autumn", () => {
    assert.deepStrictEqual(times("*/30 * * * *", "2026-10-25T00:00:00Z", 5), [
      "10-25T00:30:00",
      "10-25T01:00:00",
      "10-25T01:30:00",
      "10-25T02:00:00",
      "10-25T02:30:00"
    ])
  })

  it("of hours run through the hour that is repeated in autumn", () => {
    assert.deepStrictEqual(times("0 * * * *", "2026-10-24T23:30:00Z", 3), [
      "10-25T00:00:00",
      "10-25T01:00:00",
      "10-25T02:00:00"
    ])
    assert.deepStrictEqual(times("0 */2 * * *", "2026-10-24T23:30:00Z", 3), [
      "10-25T00:00:00",
      "10-25T01:00:00",
      "10-25T03:00:00"
    ])
  })

  it("of seconds run through the hour that is repeated in autumn", () => {
    assert.deepStrictEqual(times("30 59 * * * *", "2026-10-25T00:59:00Z", 2), ["10-25T00:59:30", "10-25T01:59:30"])
    assert.deepStrictEqual(times("45,15 30 * * * *", "2026-10-25T00:30:00Z", 4), [
      "10-25T00:30:15",
      "10-25T00:30:45",
      "10-25T01:30:15",
      "10-25T01:30:45"
    ])
    assert.deepStrictEqual(times("* 30 * * * *", "2026-10-25T00:30:58Z", 2), ["10-25T00:30:59", "10-25T01:30:00"])
  })

  it("of an interval leave out the hour that does not exist in spring", () => {
    assert.deepStrictEqual(times("15 */2 * * *", "2026-03-28T23:00:00Z", 3), [
      "03-28T23:15:00",
      "03-29T02:15:00",
      "03-29T04:15:00"
    ])
  })

  it("of an interval on some days are found days ahead", () => {
    assert.deepStrictEqual(times("*/30 * * * 1", "2026-10-25T00:00:00Z", 2), ["10-25T23:00:00", "10-25T23:30:00"])
  })

  it("of the day come once a day in autumn and in spring", () => {
    assert.deepStrictEqual(times("30 2 * * *", "2026-10-24T12:00:00Z", 2), ["10-25T00:30:00", "10-26T01:30:00"])
    assert.deepStrictEqual(times("30 2 * * *", "2026-03-28T12:00:00Z", 2), ["03-29T01:30:00", "03-30T00:30:00"])
  })
})
