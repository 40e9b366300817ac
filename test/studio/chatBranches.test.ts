import { describe, expect, it } from "vitest"
import { choose, readChoices, runIdOf, writeChoices } from "../../src/studio/page/chatBranches.ts"

describe("the branches of a conversation", () => {
  it("names a run by the variants on the way to it, without first ones", () => {
    const choices = readChoices("2v1.3v2.5v3")
    expect([1, 2, 3, 4, 5, 6].map((place) => runIdOf("c", choices, place))).toEqual([
      "chat.c.1",
      "chat.c.2",
      "chat.c.3v2.3",
      "chat.c.3v2.4",
      "chat.c.3v2.5v3.5",
      "chat.c.3v2.5v3.6"
    ])
  })

  it("forgets later choices when an earlier place chooses another variant", () => {
    expect(writeChoices(choose(readChoices("1v2.3v2.5v3"), 3, 1))).toBe("1v2.3v1")
  })
})
