import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import * as Protocol from "../src/Protocol.ts"

describe("Protocol", () => {
  it("is undocumented and has write effects by default", () => {
    const plain = Protocol.make("a2a", { handle: () => Effect.succeed("ok") })
    assert.deepStrictEqual([plain.documentation, plain.effects], [null, "write"])
    assert.notProperty(plain, "timeout")
    const told = Protocol.make("a2a", {
      documentation: "Talk to agents",
      effects: "read",
      timeout: 5,
      handle: () => Effect.succeed("ok")
    })
    assert.deepStrictEqual(
      [told.documentation, told.effects, told.timeout],
      ["Talk to agents", "read", Duration.millis(5)]
    )
  })

  it("cannot use a reserved block type (BP-81)", () => {
    for (const name of ["command", "final", "plan", "json", "result", "error", "media", "block"]) {
      assert.strictEqual(Protocol.problem(name)?.reason, "the name is reserved")
    }
  })

  it("cannot have a name that is invalid in a tag", () => {
    for (const name of ["", "  ", 'a"b', "a b", "a>b", "a\nb", "a".repeat(65)]) {
      assert.instanceOf(Protocol.problem(name), Protocol.DefinitionInvalid, JSON.stringify(name))
    }
    for (const name of ["mcp", "a2a", "home-assistant", "X_1"]) assert.isUndefined(Protocol.problem(name))
  })
})
