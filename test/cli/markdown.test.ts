import { assert, describe, it } from "@effect/vitest"
import * as Markdown from "../../src/cli/markdown.ts"

const show = (colors: boolean, ...pieces: ReadonlyArray<string>): string => {
  const markdown = Markdown.make(colors)
  return pieces.map(markdown.push).join("") + markdown.end()
}

/** What is left when nobody looks at the styles. */
const plain = (text: string): string =>
  [1, 2, 3, 22, 23].reduce((text, style) => text.replaceAll(`\u001b[${style}m`, ""), text)

const letter = "# Hello\n\n- a **strong** word\n- some `code *here*`\n\n```\n# no heading\n```\n> said *so*\nend"

describe("Markdown", () => {
  it("gives the text as it came where there are no colours", () => {
    assert.strictEqual(show(false, letter), `${letter}\n`)
  })

  it("shows a line when it is whole", () => {
    const markdown = Markdown.make(false)
    assert.strictEqual(markdown.push("one"), "")
    assert.strictEqual(markdown.push(" line\ntwo"), "one line\n")
    assert.strictEqual(markdown.end(), "two\n")
    assert.strictEqual(markdown.end(), "")
  })

  it("styles headings, lists, quotes, code and stressed words", () => {
    assert.strictEqual(show(true, "## Title"), "\u001b[1mTitle\u001b[22m\n")
    assert.strictEqual(show(true, "issue # 7 and `half"), "issue # 7 and `half\n")
    assert.strictEqual(show(true, "  * item"), "  • item\n")
    assert.strictEqual(show(true, "> quote"), "\u001b[2m│ quote\u001b[22m\n")
    assert.strictEqual(
      show(true, "a `b` **c** *d*"),
      "a \u001b[2mb\u001b[22m \u001b[1mc\u001b[22m \u001b[3md\u001b[23m\n"
    )
  })

  it("looks at nothing inside code", () => {
    assert.strictEqual(plain(show(true, "`**a**` and 2 * 3 * 4")), "**a** and 2 * 3 * 4\n")
    assert.strictEqual(show(true, "``\n`"), "``\n`\n")
    assert.strictEqual(plain(show(true, "```\n# a\n- **b**\n```\n# c")), "```\n# a\n- **b**\n```\nc\n")
  })

  it("begins the next text outside of code, also after one whose code was never closed", () => {
    const markdown = Markdown.make(true)
    assert.strictEqual(plain(markdown.push("```\n# a") + markdown.end()), "```\n# a\n")
    assert.strictEqual(markdown.push("# b\n"), "\u001b[1mb\u001b[22m\n")
  })

  it("is the same wherever the text is cut", () => {
    for (const colors of [false, true]) {
      const whole = show(colors, letter)
      for (let cut = 1; cut < letter.length; cut++) {
        assert.strictEqual(show(colors, letter.slice(0, cut), letter.slice(cut)), whole)
      }
    }
  })

  it("lets nothing of the text reach the terminal raw (S-19)", () => {
    for (const colors of [false, true]) {
      const shown = plain(show(colors, "a\u001b[2J**b\u0007**\u202e\n# c\u001b]0;t\u0007\n```\n\u009b31m"))
      assert.notMatch(shown, /(?!\n)[\p{Cc}\p{Cf}]/u)
    }
  })

  it("takes line ends of either kind", () => {
    assert.strictEqual(show(false, "a\r\nb\r", "\nc"), "a\nb\nc\n")
  })
})
