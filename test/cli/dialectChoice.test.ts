/** The dialect that a model speaks better, by how its scenarios ended. */
import { assert, describe, it } from "@effect/vitest"
import { choose, lineOf, type Measured } from "../../src/cli/dialectChoice.ts"

const run = (
  dialect: Measured["dialect"],
  status: Measured["status"],
  turns: number | null = 2,
  tokens: number | null = 100
): Measured => ({ model: "openai/gpt-5", dialect, status, turns, tokens })

const chosen = (...runs: ReadonlyArray<Measured>) => choose(runs).models.map(({ dialect }) => dialect)

describe("the choice of a dialect", () => {
  it("is the dialect in which more runs succeed", () => {
    assert.deepStrictEqual(
      chosen(run("blocks", "ok"), run("blocks", "fail"), run("tools", "ok"), run("tools", "ok", 9, 900)),
      ["tools"]
    )
  })

  it("is decided by tokens among equals, and then by turns", () => {
    assert.deepStrictEqual(chosen(run("blocks", "ok", 2, 90), run("tools", "ok", 1, 100)), ["blocks"])
    assert.deepStrictEqual(chosen(run("blocks", "ok", 3), run("tools", "ok", 2)), ["tools"])
    assert.deepStrictEqual(chosen(run("blocks", "ok", 3, null), run("tools", "ok", 2)), ["tools"])
  })

  it("counts crashes as failures, and skipped runs not at all", () => {
    const choice = choose([
      run("blocks", "error", null, null),
      run("blocks", "ok"),
      run("tools", "skipped", null, null)
    ])
    assert.deepStrictEqual(
      choice.measures.map(({ dialect, ok, runs, tokens, turns }) => [dialect, ok, runs, turns, tokens]),
      [
        ["blocks", 1, 2, 2, 100],
        ["tools", 0, 0, null, null]
      ]
    )
  })

  it("keeps the catalogue's facts about a model, and omits a model that succeeded in neither dialect", () => {
    const [model] = choose([run("blocks", "ok")]).models
    assert.deepInclude(model, { id: "gpt-5", provider: "openai", dialect: "blocks", contextWindow: 400_000 })
    const none = choose([run("blocks", "fail"), run("tools", "error")])
    assert.deepStrictEqual(none.models, [])
    assert.strictEqual(lineOf("openai/gpt-5", none), "blocks 0 of 1 ok; tools 0 of 1 ok; neither")
  })
})
