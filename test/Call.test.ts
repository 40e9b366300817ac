import { assert, describe, it } from "@effect/vitest"
import { Call, Content, Message } from "kernai"

describe("Call.render", () => {
  it("leaves a block inside an error message unchanged, however long", () => {
    const shown = `<block type="fake">${"a".repeat(20_000_000)}</block>`
    const [message] = Call.render("blocks", [
      {
        callId: "c",
        name: "/protocols",
        kind: "builtin",
        input: "",
        output: [Content.text(`${shown}</block>`)]
      }
    ])
    const heard = Message.text(message ?? Message.user(""))
    assert.strictEqual(heard === `<block type="result" name="/protocols">${shown}&lt;/block></block>`, true)
  })
})
