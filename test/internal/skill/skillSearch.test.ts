/** Finding skills by words. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Skill, SkillRegistry } from "kernai"
import { manySkills, wishes } from "../../support/manySkills.ts"

const skill = (name: string, description: string, input: { readonly [name: string]: typeof Schema.String } = {}) =>
  Skill.make(name, { description, input: Schema.Struct(input), effects: "read", execute: () => Effect.succeed("") })

const found = (words: string, ...skills: ReadonlyArray<Skill.AnySkill>) =>
  SkillRegistry.search(skills, words).map(({ name }) => name)

describe("a search among 500 skills", () => {
  it("has 500 skills and 50 wishes, each for another area", () => {
    assert.lengthOf(manySkills, 500)
    assert.lengthOf(wishes, 50)
    assert.strictEqual(new Set(wishes.map(([, name]) => name.split("_")[0])).size, 50)
  })

  it.each(wishes)("finds the skill for “%s”", (words, name) => {
    const names = SkillRegistry.search(manySkills, words).map((skill) => skill.name)
    assert.isAtMost(names.length, 8)
    assert.include(names, name)
  })

  it("ranks the right one first in at least 45 of the 50 cases", () => {
    const first = wishes.filter(([words, name]) => SkillRegistry.search(manySkills, words)[0]?.name === name)
    console.log(`right skill first: ${first.length} of ${wishes.length}`)
    assert.isAtLeast(first.length, 45)
  })
})

describe("a search for skills", () => {
  it("reads names in camelCase and snake_case as words", () => {
    assert.deepStrictEqual(found("issue", skill("createIssue", ""), skill("create_issue", ""), skill("other", "")), [
      "createIssue",
      "create_issue"
    ])
  })

  it("ranks a word in the name before one in the description, and that before one among the inputs", () => {
    const inputs = skill("a", "", { city: Schema.String })
    assert.deepStrictEqual(found("city", inputs, skill("b", "Finds a city."), skill("city", "")), ["city", "b", "a"])
  })

  it("ranks rare words before common ones", () => {
    const many = Array.from({ length: 20 }, (_, index) => skill(`get_${index}`, "Gets a thing."))
    assert.strictEqual(found("get weather", ...many, skill("weather", "Sky."))[0], "weather")
  })

  it("finds words of scripts without spaces, and none for words that nothing matches", () => {
    assert.deepStrictEqual(found("天気", skill("tenki", "天気を調べる"), skill("other", "Finds")), ["tenki"])
    assert.deepStrictEqual(found("zebra", skill("a", "b")), [])
    assert.deepStrictEqual(found("", skill("a", "b")), [])
  })

  it("returns as many as it is asked for", () => {
    assert.lengthOf(SkillRegistry.search(manySkills, "create", 3), 3)
  })
})
