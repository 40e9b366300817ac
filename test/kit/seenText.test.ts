import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { seen, seenParts, twins } from "../../src/kit/seenText.ts"
import { visible } from "../../src/kit/text.ts"
import { cases } from "../support/property.ts"

const isPlain = (text: string) => {
  const parts = seenParts(text)
  return parts.length <= 1 && parts.every((part) => part === text)
}

describe("the text that a person sees", () => {
  it("shows controls of direction, invisible and control characters as escapes", () => {
    assert.strictEqual(seen("\u202Eevil@liame\u202C"), "\\u{202e}evil@liame\\u{202c}")
    assert.strictEqual(seen("pay\u200Bpal \u2066x\u2069 \u001b[2J"), "pay\\u{200b}pal \\u{2066}x\\u{2069} \\u{1b}[2J")
    assert.strictEqual(seen("a\u{e0041}b\u3164c\u00add"), "a\\u{e0041}b\\u{3164}c\\u{ad}d")
  })

  it("marks every invisible character inside a word, and after an emoji all but its own", () => {
    const hides = ["\ufe00", "\ufe0f", "\u{e0100}", "\u{e0080}", "\u034f", "\u3164", "\u180b", "\u2065", "\u2800"]
    for (const char of hides) {
      const text = `\\u{${char.codePointAt(0)?.toString(16)}}`
      const [before, mark, after] = seenParts(`ad${char}min`)
      assert.deepStrictEqual([before, after], ["ad", "min"])
      assert.deepInclude(mark, { kind: "hidden", text })
      assert.strictEqual(visible(`ad${char}min`), `ad${text}min`)
    }
    assert.strictEqual(seen("❤\ufe0f\ufe0f 1\ufe0f\u20e3"), "❤\ufe0f\\u{fe0f} 1\ufe0f\u20e3")
  })

  it("marks a text of any length", () => {
    const parts = seenParts(`to ${"\u0430".repeat(150_000)}`)
    assert.strictEqual(parts.length, 150_001)
  })

  it("shows spaces that are none, and gaps that push text out of sight", () => {
    assert.strictEqual(seen("Acme\u00a0Ltd\u2003x"), "Acme\\u{a0}Ltd\\u{2003}x")
    assert.strictEqual(seen(`10${" ".repeat(200)}to Mallory`), "10‹200 characters of white space›to Mallory")
    assert.strictEqual(seen(`x${"\n".repeat(80)}y`), "x‹80 characters of white space›y")
  })

  it("marks letters of another script that look like Latin ones", () => {
    assert.strictEqual(seen("Аcme"), "А‹U+0410›cme")
    assert.strictEqual(seen("pаypal.com"), "pа‹U+0430›ypal.com")
    assert.strictEqual(seen("to аре"), "to а‹U+0430›р‹U+0440›е‹U+0435›")
    assert.strictEqual(seen("micrοsoft"), "micrο‹U+03BF›soft")
    assert.strictEqual(seen("𝗉ay ｐay"), "𝗉‹U+1D5C9›ay ｐ‹U+FF50›ay")
  })

  it("finds spellings of one word that fonts draw alike", () => {
    assert.deepStrictEqual(twins(["Pay PayPal 100 EUR", `{"to":"PayPaI","amount":"l00"}`]), [
      ["PayPal", "PayPaI"],
      ["100", "l00"]
    ])
    assert.deepStrictEqual(twins(["modern.example", "modem.example"]), [["modern.example", "modem.example"]])
    assert.deepStrictEqual(twins(["Pay PayPal", "to PayPal: 10 or 01"]), [])
  })

  it("marks a letter that is spelled in another way than usual", () => {
    assert.strictEqual(seen("Jose\u0301"), "Jose\u0301‹U+0065 U+0301›")
    assert.isTrue(isPlain("Jos\u00e9"))
  })

  it("leaves text of all scripts, emoji, units and code as it is", () => {
    for (const text of [
      "",
      "plain\n\ttext\r\nnext",
      "Она сухо сказала: ухо, сор и оса",
      "Ελλάδα και ο κόσμος",
      "漢字とカナ、한국어　全角",
      "עברית, العربية, हिन्दी, ไทย",
      "5 µm, 10 kΩ, Δt, x², 1ª, naïve, Straße, Ünïcödé",
      "👩‍👩‍👧 ❤️ 👍🏽",
      `{\n${" ".repeat(40)}"deep": true\n}`
    ]) {
      assert.isTrue(isPlain(text), JSON.stringify(seenParts(text)))
    }
  })

  it.effect.prop(
    "keeps every ordinary character of a text in order, and leaves nothing invisible",
    [Schema.String],
    ([text]) =>
      Effect.sync(() => {
        const plain = seenParts(text).filter((part) => typeof part === "string")
        let at = 0
        for (const part of plain) {
          const found = text.indexOf(part, at)
          assert.isAtLeast(found, at)
          at = found + part.length
        }
        assert.notMatch(seen(text), /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u)
      }),
    cases()
  )
})
