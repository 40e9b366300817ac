import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { quote, visible } from "../../../src/internal/base/visible.ts"
import { cases } from "../../support/property.ts"

describe("visible", () => {
  it("shows what moves the cursor, turns the direction or hides as escapes (S-19)", () => {
    assert.strictEqual(visible("\u001b[2J\u0007\r\n\t"), "\\u{1b}[2J\\u{7}\\r\\n\\t")
    assert.strictEqual(
      visible("a\u202eb\u200bc\u{e0041}d\u2028e\u009bf"),
      "a\\u{202e}b\\u{200b}c\\u{e0041}d\\u{2028}e\\u{9b}f"
    )
    assert.strictEqual(visible("lone \udfff"), "lone \\u{dfff}")
  })

  it("leaves what people read as it is", () => {
    for (const text of ["", "plain", "é, ß, 漢字, עברית", "🙂 ❤️", "a < b && c"])
      assert.strictEqual(visible(text), text)
  })

  it.effect.prop(
    "leaves no control character, and quotes read back as they were",
    [Schema.String],
    ([text]) =>
      Effect.sync(() => {
        assert.notMatch(visible(text), /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
        const unescaped = quote(text)
          .slice(1, -1)
          .replace(/\\(?:u\{([0-9a-f]+)\}|(.))/g, (_, code: string | undefined, char: string) =>
            code === undefined
              ? (new Map([
                  ["n", "\n"],
                  ["r", "\r"],
                  ["t", "\t"]
                ]).get(char) ?? char)
              : String.fromCodePoint(Number.parseInt(code, 16))
          )
        assert.strictEqual(unescaped, text)
      }),
    cases()
  )
})
