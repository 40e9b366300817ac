import { assert, describe, it } from "@effect/vitest"
import * as Text from "../../src/cli/terminalText.ts"

const evil = "\u001b]52;c;QUJD\u0007 \u001b[2J \u001b]8;;http://e\u001b\\link \rback \u202etxet \u009b31m \u{e0041}"

describe("text for a terminal", () => {
  it("has all control characters escaped (S-19)", () => {
    for (const text of [Text.flat(evil), Text.excerpt(evil, 500), Text.paragraph(evil).trimEnd()]) {
      assert.notMatch(text, /[\p{Cc}\p{Cf}]/u)
      assert.include(text, "\\u{1b}]52;c;QUJD\\u{7}")
      assert.include(text, "\\rback")
      assert.include(text, "\\u{202e}txet")
    }
  })

  it("marks letters that imitate others, other spaces and gaps that push text out of sight", () => {
    for (const text of [
      Text.flat("p\u0430ypal\u00a0x"),
      Text.lines("p\u0430ypal\u00a0x"),
      Text.excerpt("p\u0430ypal\u00a0x", 80)
    ]) {
      assert.strictEqual(text, "p\u0430‹U+0430›ypal\\u{a0}x")
    }
    assert.strictEqual(Text.lines(`a${"\n".repeat(90)}b`), "a‹90 characters of white space›b")
  })

  it("keeps the lines and tabs of a paragraph, however its lines end", () => {
    assert.strictEqual(Text.paragraph("a\n\tb\r\nc"), "a\n\tb\nc\n")
  })

  it("is JSON without control characters that decodes to the same value", () => {
    const value = { [evil]: [evil, "\u{1f600}", "\ud800", "plain"] }
    const text = Text.json(value)
    assert.notMatch(text, /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u)
    assert.deepStrictEqual(JSON.parse(text), value)
    assert.include(text, "\u{1f600}")
  })

  it("marks where it was truncated, and never splits a character", () => {
    assert.strictEqual(Text.excerpt("short", 5), "short")
    assert.strictEqual(Text.excerpt("shorter", 5), "shor…")
    assert.strictEqual(Text.excerpt(`abc${"\u{1f600}".repeat(9)}`, 5), "abc…")
    assert.strictEqual(Text.excerpt(`${" ".repeat(100)}far`, 5), "…")
    assert.strictEqual(Text.clip("\u{1f600}\u{1f600}", 3), "\u{1f600}")
  })

  it("counts wide characters as two columns", () => {
    assert.deepStrictEqual(["ab c", "漢字", "ーガ가", "é", "❤", "👍", ""].map(Text.width), [4, 4, 6, 1, 1, 2, 0])
    assert.strictEqual(Text.excerpt("漢字かな", 8), "漢字かな")
    assert.strictEqual(Text.excerpt("漢字かな", 7), "漢字か…")
    assert.strictEqual(Text.excerpt("漢字かな", 6), "漢字…")
  })

  it("shows durations in milliseconds, seconds and minutes", () => {
    assert.deepStrictEqual([0, 1, 999, 999.6, 1_000, 59_900, 59_960, 61_000, 119_600].map(Text.duration), [
      "<1 ms",
      "1 ms",
      "999 ms",
      "1.0 s",
      "1.0 s",
      "59.9 s",
      "1 min 0 s",
      "1 min 1 s",
      "2 min 0 s"
    ])
  })

  it("uses the plural of a word, except for one", () => {
    assert.deepStrictEqual(
      [0, 1, 2].map((number) => Text.count(number, "step")),
      ["0 steps", "1 step", "2 steps"]
    )
  })

  it("distinguishes no tokens from tokens that were not reported", () => {
    assert.strictEqual(Text.tokens(null), "tokens not reported")
    assert.strictEqual(Text.tokens({ inputTokens: 0, outputTokens: 0 }), "0 tokens in, 0 out")
  })
})
