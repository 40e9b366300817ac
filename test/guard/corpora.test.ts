/** Detectors against the corpora of test/fixtures/guards. The figures are logged; the acceptance shows them. */
import { assert, describe, it } from "@effect/vitest"
import { Detector } from "kernai/guard"
import * as Injections from "../fixtures/guards/injections.ts"
import * as PersonalData from "../fixtures/guards/personalData.ts"
import * as Secrets from "../fixtures/guards/secrets.ts"

interface Score {
  readonly rows: number
  hits: number
  misses: number
  wrong: number
}

/** Compares findings with the marked places of each row: a place counts as found if its end is covered. */
const score = (rows: ReadonlyArray<PersonalData.Row>, detector: Detector.Detector, covered: number): Score => {
  const score: Score = { rows: rows.length, hits: 0, misses: 0, wrong: 0 }
  for (const { kind, text } of rows) {
    const start = text.indexOf("«")
    const plain = text.replace(/[«»]/g, "")
    const end = text.indexOf("»") - 1
    const found = detector.find(plain)
    const hit = found.filter(
      (finding) => kind === finding.kind && finding.start <= Math.max(start, end - covered) && finding.end >= end
    )
    if (start >= 0) score[hit.length > 0 ? "hits" : "misses"]++
    score.wrong += found.length - hit.length
  }
  return score
}

const shown = (name: string, { hits, misses, rows, wrong }: Score): readonly [precision: number, recall: number] => {
  const precision = hits / (hits + wrong)
  const recall = hits / (hits + misses)
  console.log(`guards ${name}: ${rows} rows, precision ${precision.toFixed(3)}, recall ${recall.toFixed(3)}`)
  return [precision, recall]
}

describe("the corpora of guards", () => {
  it("have their personal data found", () => {
    const detector = Detector.personalData({ names: PersonalData.names })
    const [precision, recall] = shown("personal data", score(PersonalData.rows, detector, Infinity))
    assert.isAtLeast(precision, 0.95)
    assert.isAtLeast(recall, 0.95)
  })

  it("have their secrets found", () => {
    const [precision, recall] = shown("secrets", score(Secrets.rows, Detector.secrets, 8))
    assert.isAtLeast(precision, 0.95)
    assert.isAtLeast(recall, 0.95)
  })

  it("have most of their injections found by rules", () => {
    const score: Score = { rows: Injections.rows.length, hits: 0, misses: 0, wrong: 0 }
    for (const { isAttack, text } of Injections.rows) {
      const isFound = Detector.injections.find(text).length > 0
      if (isAttack) score[isFound ? "hits" : "misses"]++
      else if (isFound) score.wrong++
    }
    const [precision, recall] = shown("injections", score)
    assert.isAtLeast(precision, 0.95)
    assert.isAtLeast(recall, 0.85)
  })
})
