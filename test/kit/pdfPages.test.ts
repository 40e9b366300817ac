/** The number of pages that a PDF file shows. */
import { assert, describe, it } from "@effect/vitest"
import { pdfPages } from "../../src/kit/pdfPages.ts"

const file = (text: string) => Uint8Array.from(text, (character) => character.charCodeAt(0))

describe("the pages of a PDF file", () => {
  it("are those of the root of its page tree, in any order of its entries", () => {
    const tree = (root: string) => `%PDF-1.4\n<< /Type /Pages /Count 4 >>\n${root}\n<< /Type /Page /Count 9 >>`
    for (const root of [
      "<< /Type /Pages /Kids [ 3 0 R ] /Count 12 >>",
      "<</Count 12/Type/Pages/Resources<</XObject 1>>"
    ]) {
      assert.strictEqual(pdfPages(file(tree(root))), 12)
    }
    assert.strictEqual(pdfPages(file(`%PDF-1.4${" ".repeat(5_000)}<</Count 3/Type /Pages>>`)), 3)
  })

  it("stand at the beginning of a file that is prepared for the web", () => {
    const head = "%PDF-1.5\n1 0 obj\n<< /Linearized 1 /L 9999 /O 5 /E 99 /N 31 /T 9 >>"
    assert.strictEqual(pdfPages(file(`${head} << /Type /Pages /Count 2 >>`)), 31)
  })

  it("are unknown where they are compressed, and in other files", () => {
    assert.isUndefined(pdfPages(file("%PDF-1.5\n<< /Type /ObjStm /N 4 >> stream")))
    assert.isUndefined(pdfPages(file("<< /Type /Pages /Count 2 >>")))
    assert.isUndefined(pdfPages(new Uint8Array()))
  })

  it("are found in time that grows with the bytes alone", () => {
    const hostile = file(`%PDF-1.4${"<</Type /Pages ".repeat(200_000)}`)
    assert.isUndefined(pdfPages(hostile))
  })
})
