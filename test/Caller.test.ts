import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import { Caller } from "kernai"

describe("A caller", () => {
  const isCaller = Schema.is(Caller.Caller)

  it("may have a tenant, roles and labels, within their bounds", () => {
    const labels = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`l${at}`, "x"]))
    const ada = { id: "ada", tenant: "acme", roles: ["boss"], labels: { "cost/centre": "4711", empty: "" } }
    assert.isTrue(isCaller(ada))
    assert.isTrue(isCaller({ id: "ada" }))
    assert.isTrue(isCaller({ ...ada, labels: labels(32) }))
    for (const wrong of [
      { id: "" },
      { id: "x".repeat(257) },
      { ...ada, tenant: "" },
      { ...ada, tenant: "x".repeat(129) },
      { ...ada, roles: Array.from({ length: 65 }, () => "boss") },
      { ...ada, roles: ["x".repeat(129)] },
      { ...ada, labels: labels(33) },
      { ...ada, labels: { team: "x".repeat(257) } },
      { ...ada, labels: { "team=a": "b" } },
      { ...ada, labels: { _team: "b" } },
      { ...ada, labels: { team: 1 } }
    ]) {
      assert.isFalse(isCaller(wrong), JSON.stringify(wrong).slice(0, 80))
    }
  })

  it("answers no question of another tenant, whatever its roles", () => {
    const owner = { id: "ada", tenant: "acme" }
    const rules = [{ roles: ["finance"] }, {}]
    const may = (caller: Caller.Caller, of: Caller.Caller | undefined = owner) => Caller.mayAnswer(rules, caller, of)
    assert.isTrue(may({ id: "bob", tenant: "acme", roles: ["finance"] }))
    assert.isTrue(may({ id: "host", roles: ["finance"] }))
    assert.isFalse(may({ id: "bob", tenant: "umbrella", roles: ["finance"] }))
    assert.isFalse(may({ id: "bob", tenant: "acme", roles: ["finance"] }, { id: "eva" }))
    assert.isFalse(Caller.mayAnswer(rules, { id: "bob", tenant: "acme", roles: ["finance"] }, undefined))
    // The owner stays the owner without naming the tenant.
    assert.isFalse(may({ id: "ada", roles: ["finance"] }))
    assert.isFalse(may({ id: "ada", tenant: "acme", roles: ["finance"] }))
  })

  it("is selected by its tenant and by all of its labels", () => {
    const ada = { id: "ada", tenant: "acme", labels: { team: "a", kind: "test" } }
    assert.isTrue(Caller.isSelected(ada, {}))
    assert.isTrue(Caller.isSelected(undefined, { labels: {} }))
    assert.isTrue(Caller.isSelected(ada, { tenant: "acme", labels: { team: "a" } }))
    assert.isFalse(Caller.isSelected(ada, { tenant: "acme", labels: { team: "a", kind: "live" } }))
    assert.isFalse(Caller.isSelected(ada, { tenant: "umbrella" }))
    assert.isFalse(Caller.isSelected(undefined, { labels: { toString: "a" } }))
  })
})

describe("Labels", () => {
  it("are read from texts, each name once", () => {
    assert.deepStrictEqual(Caller.labelsIn(["team=a=b", "kind="]), { team: "a=b", kind: "" })
    assert.deepStrictEqual(Caller.labelsIn([]), {})
    for (const wrong of [["team"], ["=a"], ["a b=c"], ["team=a", "team=b"]]) {
      assert.isUndefined(Caller.labelsIn(wrong), wrong.join())
    }
  })
})
