import { assert, describe, it } from "@effect/vitest"
import { type Column, table } from "../../src/cli/table.ts"
import * as Text from "../../src/cli/terminalText.ts"

interface Row {
  readonly run: string
  readonly status: string
  readonly agent: string
  readonly question: string
}

const columns: ReadonlyArray<Column<Row>> = [
  { title: "run", cell: ({ run }) => run },
  { title: "status", cell: ({ status }) => status, tone: () => "good" },
  { title: "agent", cell: ({ agent }) => agent, rank: 2 },
  { title: "question", cell: ({ question }) => question, least: 20 }
]

const rows: ReadonlyArray<Row> = [
  { run: "run_0a1b2c3d", status: "completed", agent: "the-clerk-of-the-third-floor", question: "Which refund is due?" },
  { run: "run_4e5f6a7b", status: "waiting", agent: "", question: "漢".repeat(90) }
]

const drawn = (width: number, colors = false) => table(columns, rows, { columns: width, colors })

describe("a table", () => {
  it("is never wider than the terminal", () => {
    for (let width = 20; width <= 160; width += 4) {
      const widest = Math.max(...drawn(width, true).split("\n").map(Text.width))
      assert.isAtMost(widest, width)
    }
  })

  it("marks an imitating letter once, and the title of a column, too", () => {
    const marked = "p\u0430‹U+0430›y"
    for (const width of [40, 100]) {
      const drawn = table([{ title: "p\u0430y", cell: (text: string) => text }], ["p\u0430y"], {
        columns: width,
        colors: false
      })
      assert.strictEqual(drawn, width < 60 ? `${marked}\n` : `${marked}\n${marked}\n`)
    }
  })

  it("shows all columns where they fit, and cuts the last one", () => {
    const [title = "", first = "", second = ""] = drawn(140).split("\n")
    assert.match(title, /^run +status +agent +question$/)
    assert.match(first, /^run_0a1b2c3d {2}completed {2}the-clerk-of-the-third-floor {2}Which refund is due\?$/)
    assert.match(second, /漢…$/)
  })

  it("leaves out the column that matters least before it cuts below the least width", () => {
    const [title = "", first = "", second = ""] = drawn(64).split("\n")
    assert.match(title, /^run +status +question$/)
    assert.match(first, /Which refund is due\?$/)
    assert.match(second, /漢…$/)
  })

  it("draws a card for each row on a narrow terminal, without empty cells", () => {
    const [first = "", second = ""] = drawn(40).split("\n\n")
    assert.strictEqual(
      first,
      [
        "run_0a1b2c3d",
        "  status completed",
        "  agent the-clerk-of-the-third-floor",
        "  question Which refund is due?"
      ].join("\n")
    )
    assert.deepStrictEqual(second.split("\n").slice(0, 2), ["run_4e5f6a7b", "  status waiting"])
    assert.match(second, /\n {2}question 漢+…\n$/)
  })

  it("puts short cells of a card on one line", () => {
    const text = table(
      [
        { title: "run", cell: () => "r" },
        { title: "turns", cell: () => "2" },
        { title: "cost", cell: () => "$0.01" }
      ],
      [0],
      { columns: 40, colors: false }
    )
    assert.strictEqual(text, "r\n  turns 2, cost $0.01\n")
  })

  it("leaves a column without any text out", () => {
    const text = table(
      [
        { title: "run", cell: String },
        { title: "cost", cell: () => "" },
        { title: "tasks", cell: (row) => (row === 1 ? "2" : "") }
      ],
      [1, 2],
      { columns: 80, colors: false }
    )
    assert.strictEqual(text, "run  tasks\n1    2\n2\n")
  })

  it("has no heading without titles", () => {
    assert.strictEqual(table([{ title: "", cell: String }], [1, 2], { columns: 80, colors: false }), "1\n2\n")
  })

  it("escapes control characters in its cells", () => {
    const text = table([{ title: "", cell: () => "\u001b[2J\n\u202etxet" }], [0], { columns: 80, colors: false })
    assert.strictEqual(text, "\\u{1b}[2J \\u{202e}txet\n")
  })
})
