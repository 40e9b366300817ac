import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { drawingOfScreen } from "../../src/cli/answerDrawing.ts"
import { MarkdownDrawing } from "../../src/cli/markdownDrawing.ts"
import { whole } from "../../src/cli/plainDrawing.ts"
import * as Text from "../../src/cli/terminalText.ts"
import { memoryScreen } from "./support.ts"

const draw = (text: string, columns = 80, colors = false): string =>
  whole(new MarkdownDrawing({ columns, colors }), text)

/** Draws a text that arrives in pieces. Returns what each piece writes, and the end. */
const stream = (...pieces: ReadonlyArray<string>): ReadonlyArray<string> => {
  const drawing = new MarkdownDrawing({ columns: 80, colors: false })
  return [...pieces.map((piece) => drawing.push(piece)), drawing.end()]
}

const prices = `| Plan | Price | What one gets |
| --- | ---: | --- |
| Free | 0 | one project, the community, and no promises about anything |
| **Pro** | 12 | support |`

const answer = `# Plans

Two plans are *offered*, as \`plans.md\` says:
- **Free**, for a project that a single person works on in the evening
- Pro
  1. support
  2. [terms](https://example.com/terms)

\`\`\`ts
const price = "**12**"   // kept
\`\`\`

> Prices may change.

---
See https://example.com.`

describe("Markdown in a terminal", () => {
  it("is drawn as headings, paragraphs, lists, code, quotes and links with their addresses", () => {
    assert.strictEqual(
      draw(answer),
      `# Plans

Two plans are *offered*, as \`plans.md\` says:

• **Free**, for a project that a single person works on in the evening
• Pro
  1. support
  2. terms (https://example.com/terms)

\`\`\`ts
const price = "**12**"   // kept
\`\`\`

│ Prices may change.

────────────────────────────────────────

See https://example.com.
`
    )
  })

  it("breaks lines between words, below the text of an item, and no later than at 100 columns", () => {
    const item = `- ${"seven chars ".repeat(12)}https://example.com/${"long".repeat(12)}`
    const lines = (columns: number) => draw(item, columns).trimEnd().split("\n")
    assert.deepStrictEqual(
      [40, 80, 140].map((columns) => Math.max(...lines(columns).slice(0, -1).map(Text.width))),
      [37, 79, 97]
    )
    for (const columns of [40, 80, 140]) {
      const [first, ...others] = lines(columns)
      assert.match(first ?? "", /^• seven/)
      for (const line of others) assert.match(line, /^ {2}\S/)
      assert.strictEqual(others.at(-1), `  https://example.com/${"long".repeat(12)}`)
    }
  })

  it("is colored word by word, and then without the marks of emphasis", () => {
    assert.strictEqual(
      draw("# A *b*\n\n**two words** ~~no~~ `x` [y](z:)", 80, true),
      "\u001b[2m# \u001b[22m\u001b[1mA\u001b[22m \u001b[3m\u001b[1mb\u001b[22m\u001b[23m\n\n" +
        "\u001b[1mtwo\u001b[22m \u001b[1mwords\u001b[22m \u001b[9mno\u001b[29m \u001b[36mx\u001b[39m y \u001b[2m(z:)\u001b[22m\n"
    )
  })

  it("keeps every cell of a table whole: rows become lines where the terminal is too narrow", () => {
    const grid = `Plan  Price  What one gets
──────────────────────────────────────────────────────────────────────
Free  0      one project, the community, and no promises about anything
Pro   12     support
`.replace(/─+/, "─".repeat(71))
    assert.strictEqual(draw(prices, 140), grid)
    assert.strictEqual(draw(prices, 80), grid)
    assert.strictEqual(
      draw(prices, 40),
      `Plan: Free
Price: 0
What one gets: one project, the
community, and no promises about
anything

Plan: Pro
Price: 12
What one gets: support
`
    )
  })

  it("leaves out nothing but marks: HTML, definitions and titles of pictures stay", () => {
    assert.strictEqual(
      draw("<!-- a --> b\n\n![cat](cat.png) \\*c\\* <b>d</b>\n\n[e]: https://f.example\n\n- [x] g\n- [ ] h"),
      "<!-- a --> b\n\ncat (cat.png) *c* <b>d</b>\n\n[e]: https://f.example\n\n• ☑ g\n• ☐ h\n"
    )
  })

  it("shows control, invisible and imitating characters, also where emphasis splits a word", () => {
    assert.strictEqual(
      draw("a\u001b[2J **b\u202e**\rc\n\n`\u200b`\n\n```\u0007\n\u001b]0;x\n```", 80),
      "a\\u{1b}[2J **b\\u{202e}**\\rc\n\n`\\u{200b}`\n\n```\\u{7}\n\\u{1b}]0;x\n```\n"
    )
    assert.strictEqual(draw("| \u001b[1m |\n| - |\n| p\u0430y |", 80).includes("\u001b"), false)
    assert.include(draw("| a |\n| - |\n| p\u0430y |"), "p\u0430‹U+0430›y")
    assert.strictEqual(draw("жар \u0440**ay**", 80, true), "жар \u0440‹U+0440›ay\n")
    assert.strictEqual(
      draw("[https://good.example](https://evil.example)"),
      "https://good.example (https://evil.example)\n"
    )
  })

  it("appears block by block, lists item by item and code line by line", () => {
    assert.deepStrictEqual(stream("# A\n", "Some ", "text\n", "goes on.\n\n", "Last"), [
      "# A\n",
      "",
      "",
      "\nSome text\ngoes on.\n",
      "",
      "\nLast\n"
    ])
    assert.deepStrictEqual(stream("1. a\n", "2. b\n", "   - c\n", "3. d\n"), [
      "",
      "1. a\n",
      "",
      "2. b\n   • c\n",
      "3. d\n"
    ])
    assert.deepStrictEqual(stream("```js\n", "a\n\n", "  b", "\n", "```\n", "\n", "c"), [
      "```js\n",
      "a\n\n",
      "",
      "  b\n",
      "",
      "```\n",
      "",
      "\nc\n"
    ])
  })

  it("keeps code as it is: empty lines, other fences, and indentation beyond that of the fence", () => {
    const code = "````md\n```\na\n```\n\n\n  b\n````\n"
    assert.strictEqual(draw(code), code)
    assert.strictEqual(draw("~~~\nopen"), "~~~\nopen\n~~~\n")
    assert.strictEqual(draw("1. a\n   ```\n     b\n   ```"), "1. a\n   ```\n     b\n   ```\n")
    assert.strictEqual(draw("  ```\n    b\n  ```\n\n    indented\n"), "```\n  b\n```\n\n```\nindented\n```\n")
  })

  it("is the same in pieces of any size", () => {
    const text = `${answer}\n\n${prices}\n\nEnd.`
    for (const size of [1, 7, 60]) {
      const pieces = Array.from({ length: Math.ceil(text.length / size) }, (_, i) =>
        text.slice(i * size, (i + 1) * size)
      )
      assert.strictEqual(stream(...pieces).join(""), draw(text))
    }
  })

  it("draws the next text from its beginning", () => {
    const drawing = new MarkdownDrawing({ columns: 80, colors: false })
    assert.deepStrictEqual(
      ["- a\n- b", '{"a":\n1}', "- c"].map((text) => whole(drawing, text)),
      ["• a\n• b\n", '{"a":\n1}\n', "• c\n"]
    )
  })

  it("leaves JSON, very long texts and blocks nested too deeply as they are", () => {
    const texts = ['{"a": "*b* [c](d)"}', '[{"a": "*b*"}]', "*a* ".repeat(20_000), `${">".repeat(50_000)} a`]
    for (const text of texts) assert.strictEqual(draw(text, 80, true), `${text}\n`)
  })

  it.effect("is read for a terminal only; a pipe gets the text", () =>
    Effect.gen(function* () {
      const written = (isTerminal: boolean, color?: boolean) =>
        drawingOfScreen(color).pipe(
          Effect.map((drawing) => whole(drawing, "- **a**")),
          Effect.provide(memoryScreen(false, 80, isTerminal).layer)
        )
      assert.strictEqual(yield* written(false, true), "- **a**\n")
      assert.strictEqual(yield* written(true), "• **a**\n")
      assert.strictEqual(yield* written(true, true), "• \u001b[1ma\u001b[22m\n")
    })
  )
})
