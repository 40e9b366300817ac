import { assert, describe, it } from "@effect/vitest"
import { lines, LineTooLong } from "../src/lines.ts"

const pieces = async function* (texts: ReadonlyArray<string>) {
  yield* texts
}

describe("lines", () => {
  it("are the same however the text is cut", async () => {
    const text = "one\ntwo\r\n\nlast"
    for (const cut of [[text], Array.from(text), text.split(/(?<=\n)/)]) {
      const found: Array<string> = []
      for await (const line of lines(pieces(cut))) found.push(line)
      assert.deepStrictEqual(found, ["one", "two", "", "last"])
    }
  })

  it("have a limit: no more is held of one that never ends", async () => {
    let read = 0
    const endless = async function* () {
      for (;;) yield "x".repeat(++read)
    }
    const error = await lines(endless(), 10)
      .next()
      .catch((error: unknown) => error)
    assert.instanceOf(error, LineTooLong)
    assert.strictEqual(read, 5)
  })
})
