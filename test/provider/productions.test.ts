import { assert, describe, it } from "@effect/vitest"
import { heightsOf, type Node } from "../../src/provider/internal/grammar/productions.ts"

describe("the heights of a grammar's rules", () => {
  const count = 1_000

  for (const [where, order] of [
    ["behind", (index: number) => index],
    ["before", (index: number) => count - index]
  ] as const) {
    it(`are computed with a few visits to each rule when the rules it uses stand ${where} it (R-21)`, () => {
      let looks = 0
      const uses = (index: number): Node => ({
        kind: "rule",
        get name() {
          looks++
          return `rule-${index}`
        }
      })
      const chain = Array.from({ length: count }, (_, index) => [`rule-${index}`, uses(index + 1)] as const)
      const rules = new Map<string, Node>([...chain, [`rule-${count}`, { kind: "text", text: "end" }]])
      const ordered = new Map([...rules].toSorted(([a], [b]) => order(Number(a.slice(5))) - order(Number(b.slice(5)))))
      assert.strictEqual(heightsOf(ordered).get("rule-0"), count)
      assert.isAtMost(looks, 4 * count)
    })
  }
})
