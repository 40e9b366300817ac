/** The page about requests says what the rules of vendors are. */
import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { RequestRules } from "kernai/testing"
import { vendorRules } from "../../src/kit/vendorRules.ts"

const page = readFileSync(new URL("../../docs/requests.md", import.meta.url), "utf8")

const yes = (value: boolean | undefined): string => (value === true ? "yes" : "no")

/** The row of a format in the table of rules. */
const row = (wire: RequestRules.Wire): string => {
  const rules = vendorRules[wire]
  return `| \`${wire}\` | \`${rules.name.source}\` | ${rules.callId === undefined ? "none" : `\`${rules.callId.source}\``} | ${[
    rules.refusesBlank,
    rules.userFirst,
    rules.userLast,
    rules.needsItemAfterReasoning,
    rules.resultsFirst,
    rules.answersResults
  ]
    .map(yes)
    .join(" | ")} |`
}

describe("the page about requests", () => {
  it("has a row for each format, with its rules", () => {
    for (const wire of RequestRules.wires) assert.include(page, row(wire))
    assert.sameMembers([...RequestRules.wires], Object.keys(vendorRules))
  })

  it("names every source of a rule, and no other", () => {
    const known = new Set(Object.values(vendorRules).flatMap(({ sources }) => sources.map(({ url }) => url)))
    const told = new Set([...page.matchAll(/https:\/\/[^\s)>|]+/g)].map(([url]) => url))
    assert.sameMembers([...told], [...known])
  })

  it("names the limits of images, PDF files and requests", () => {
    for (const { images, pdf, requestBytes } of Object.values(vendorRules)) {
      const { pagesOfSmall, ...others } = pdf ?? {}
      for (const number of [requestBytes, pagesOfSmall?.window, pagesOfSmall?.pages, ...Object.values(others)]) {
        if (number !== undefined) assert.include(page, number.toLocaleString("en"))
      }
      if (images === undefined) continue
      const numbers = [images.side, images.sideOfMany?.above, images.sideOfMany?.side, images.encodedBytes, images.most]
      for (const number of numbers) if (number !== undefined) assert.include(page, number.toLocaleString("en"))
    }
  })
})
