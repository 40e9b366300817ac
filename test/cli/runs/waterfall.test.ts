import { assert, describe, it } from "@effect/vitest"
import { drawTree } from "../../../src/cli/runs/waterfall.ts"
import * as Text from "../../../src/cli/terminalText.ts"
import type { RunTree } from "kernai/studio"

const line = (
  level: number,
  label: string,
  bars: RunTree.Line["bars"],
  status = "ok",
  kind: RunTree.Line["kind"] = "call"
): RunTree.Line => ({ key: label, runId: "r", revision: 1, errors: 0, waits: 0, kind, level, label, status, bars })

const lines = [
  line(1, "clerk", [{ kind: "run", from: 0, to: 1_000 }], "waiting", "run"),
  line(2, "turn 1 · m", [{ kind: "model", from: 0, to: 500 }], "ok", "turn"),
  line(3, "look", [{ kind: "skill", from: 500, to: 750 }]),
  line(3, "pay", [{ kind: "waiting", from: 500 }], "waiting"),
  line(2, "turn 2 · m", [{ kind: "model", from: 750, to: 1_000 }], "error", "turn")
]

describe("the tree of a run in the terminal", () => {
  it("has a bar for each time, on one axis", () => {
    assert.deepStrictEqual(drawTree(lines, 1_000, { columns: 76, colors: false }), [
      "clerk (waiting)         1.0 s  ─────────────────────────────────────────────",
      "├─ turn 1 · m          500 ms  ███████████████████████",
      "│  ├─ look             250 ms                        ▓▓▓▓▓▓▓▓▓▓▓▓",
      "│  └─ pay (waiting)    500 ms                        ░░░░░░░░░░░░░░░░░░░░░░░",
      "└─ turn 2 · m (error)  250 ms                                   ████████████",
      "                               █ model  ▓ skill  ░ waiting"
    ])
  })

  it("has no bars below 60 columns, and is never wider than the terminal", () => {
    assert.include(drawTree(lines, 1_000, { columns: 40, colors: false }), "│  ├─ look             250 ms")
    const long = lines.map((line) => ({ ...line, label: line.label.repeat(20) }))
    for (const columns of [30, 40, 59, 60, 80, 140]) {
      for (const text of drawTree(long, 1_000, { columns, colors: true })) assert.isAtMost(Text.width(text), columns)
    }
  })

  it("counts lines beyond the first 200", () => {
    const many = Array.from({ length: 500 }, () => line(2, "turn", []))
    const drawn = drawTree(many, 0, { columns: 40, colors: false })
    assert.deepStrictEqual([drawn.length, drawn.at(-1)], [201, "… 300 more lines"])
  })

  it("escapes control characters of names", () => {
    const [drawn] = drawTree([line(1, "a\u001b[2J", [])], 0, { columns: 80, colors: false })
    assert.match(drawn ?? "", /^a\\u\{1b\}\[2J/)
  })
})
