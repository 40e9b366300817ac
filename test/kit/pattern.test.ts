import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import * as Pattern from "../../src/kit/pattern.ts"
import { cases } from "../support/property.ts"

const matches = (source: string, text: string): boolean => Result.getOrThrow(Pattern.regex(source))(text)
const globs = (source: string, name: string): boolean => Result.getOrThrow(Pattern.glob(source))(name)
const reason = (source: string): string => Result.getOrThrow(Result.flip(Pattern.regex(source)))

const sources = [
  "abc",
  "^abc$",
  "a|b|",
  "a*",
  "(a+)+$",
  "^(a|ab)(c|bcd)*d?$",
  "x{2,4}y{3}z{1,}",
  "[a-c]{2}",
  "[^a-c]",
  "[]a",
  "[^]",
  "[a-]+$",
  "[\\w-]+",
  "[a-\\d]",
  "\\bif\\b",
  "\\Bx\\B",
  "a.c",
  "a\\.c",
  "\\d+\\.\\d+",
  "\\s\\S",
  "\\x41\\u0042",
  "(?:ab)+?c",
  "(?<name>ab)*?$",
  "a{",
  "{",
  "a{,3}",
  "]",
  "}",
  "^$",
  "\\/etc\\/",
  "(a*)*b",
  "(a|a?)+$",
  "\\t|\\n",
  "(?:)+x"
]

const texts = [
  "",
  "a",
  "ab",
  "abc",
  "xabcx",
  "aaaa!",
  "abcbcdd",
  "xxyyyz",
  "ca",
  "a-",
  "-",
  "if",
  "iffy",
  "so if so",
  "axb",
  "x",
  "a\nc",
  "axc",
  "3.14",
  " x",
  "AB",
  "ababc",
  "a{",
  "a{,3}",
  "]}",
  "/etc/passwd",
  "bbb",
  "\u2028",
  "\u00a0b",
  "é",
  "\u{1f600}"
]

describe("pattern", () => {
  it("matches what RegExp matches, for every listed expression", () => {
    for (const source of sources) {
      for (const text of texts) {
        assert.strictEqual(matches(source, text), new RegExp(source).test(text), `${source} on ${JSON.stringify(text)}`)
      }
    }
  })

  it.prop(
    "matches what RegExp matches, for random expressions and texts",
    [
      Schema.Array(Schema.Literals(["a", "b", "(", ")", "|", "*", "?", "^", "$", "\\b", "[ab]", "{2}", "."])),
      Schema.Array(Schema.Literals(["a", "b", "c", " ", "\n"]))
    ],
    ([pieces, characters]) => {
      const source = pieces.slice(0, 12).join("")
      const text = characters.slice(0, 12).join("")
      const ours = Pattern.regex(source)
      const theirs = Result.try(() => new RegExp(source))
      assert.strictEqual(Result.isSuccess(ours), Result.isSuccess(theirs), source)
      if (Result.isSuccess(ours) && Result.isSuccess(theirs)) {
        assert.strictEqual(ours.success(text), theirs.success.test(text), `${source} on ${JSON.stringify(text)}`)
      }
    },
    cases()
  )

  it("refuses expressions that need backtracking or do not parse", () => {
    for (const source of ["(?=a)", "(?!a)", "(?<=a)", "(a)\\1", "\\k<n>", "\\p{L}", "(?i:a)"]) {
      assert.match(reason(source), /unsupported/, source)
    }
    for (const source of ["(", ")", "[", "a**", "*", "\\", "[b-a]", "a{3,2}", "x{2}{3}"]) {
      assert.isTrue(Result.isFailure(Pattern.regex(source)), source)
    }
  })

  it("refuses expressions that need too large a table, before it reads any text (S-12)", () => {
    assert.match(reason("(a|b)*a(a|b){20}"), /too complex/)
    assert.match(reason("(((a{1000}){1000}){1000})"), /too large|too complex/)
    assert.match(reason("((((){1000}){1000}){1000}){1000}"), /too complex/)
    assert.match(reason("a".repeat(2_000)), /longer than/)
    assert.match(reason("(".repeat(100) + ")".repeat(100)), /deeply/)
    const spend = Pattern.budget()
    spend.steps = 10
    assert.isTrue(Result.isFailure(Pattern.regex("abcdefghijkl", spend)))
  })

  it("takes one step per character of a hostile text (S-12)", () => {
    const text = `${"a".repeat(1024 * 1024)}!`
    assert.isFalse(matches("(a+)+$", text))
    assert.isFalse(matches("(a|a)*b$", text))
    assert.isTrue(matches("(a+)+!$", text))
  })

  it("matches a glob against a whole name (AC-19)", () => {
    assert.isTrue(globs("*", ""))
    assert.isTrue(globs("fs_*", "fs_read"))
    assert.isFalse(globs("fs_*", "xfs_read"))
    assert.isFalse(globs("fs_", "fs_read"))
    assert.isTrue(globs("*_read", "fs_read"))
    assert.isTrue(globs("mcp_*__get_*", "mcp_a__b__get_x"))
    assert.isTrue(globs("fs_?ead", "fs_read"))
    assert.isFalse(globs("fs_?ead", "fs_ead"))
    assert.isTrue(globs("fs_{read,write}", "fs_write"))
    assert.isFalse(globs("fs_{read,write}", "fs_delete"))
    assert.isTrue(globs("[a-f]*", "fs"))
    assert.isFalse(globs("[!a-f]*", "fs"))
    assert.isTrue(globs("a.b+", "a.b+"))
    assert.isFalse(globs("a.b", "axb"))
    assert.isTrue(globs("\\*", "*"))
    assert.isFalse(globs("\\*", "x"))
    for (const source of ["[a", "{a,b", "\\", "[b-a]"]) assert.isTrue(Result.isFailure(Pattern.glob(source)), source)
  })
})
