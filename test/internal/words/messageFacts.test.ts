import { assert, describe, it } from "@effect/vitest"
import { Content, Message } from "kernai"
import { isSame } from "../../../src/internal/words/messageFacts.ts"
import { bytesEach } from "../../support/heap.ts"

describe("isSame", () => {
  it("compares roles, texts and the bounds of texts", () => {
    const message = Message.user(["a", "bc"])
    assert.isTrue(isSame(message, Message.user(["a", "bc"])))
    assert.isFalse(isSame(message, Message.user(["ab", "c"])))
    assert.isFalse(isSame(message, Message.user(["a"])))
    assert.isFalse(isSame(message, Message.assistant(["a", "bc"])))
    assert.isFalse(isSame(message, undefined))
  })

  it("compares messages with more than texts as a whole", () => {
    const called = (input: string) => Message.assistant([Content.text("a"), Content.toolUse("1", "pay", { input })])
    assert.isTrue(isSame(called("x"), called("x")))
    assert.isFalse(isSame(called("x"), called("y")))
    const named = (name: string) => Message.make("user", "a", { name })
    assert.isTrue(isSame(named("ada"), named("ada")))
    assert.isFalse(isSame(named("ada"), Message.user("a")))
  })

  it("keeps nothing of the texts that it compared", () => {
    const twice = (index: number) => [Message.user(`${index}`), Message.user(`${index}`)] as const
    const compared = (index: number) => {
      const messages = twice(index)
      return isSame(...messages) ? messages : undefined
    }
    assert.isBelow(bytesEach(20_000, compared) - bytesEach(20_000, twice), 20)
  })
})
