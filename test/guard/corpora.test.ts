/** Detectors against the corpora of test/fixtures/guards. The figures are logged; the acceptance shows them. */
import { assert, describe, it } from "@effect/vitest"
import { Detector } from "kernai/guard"
import * as BlindInjections from "../fixtures/guards/blindInjections.ts"
import * as BlindPersonalData from "../fixtures/guards/blindPersonalData.ts"
import * as BlindSecrets from "../fixtures/guards/blindSecrets.ts"
import * as Injections from "../fixtures/guards/injections.ts"
import { marked } from "../fixtures/guards/marked.ts"
import * as PersonalData from "../fixtures/guards/personalData.ts"
import * as Secrets from "../fixtures/guards/secrets.ts"

interface Score {
  hits: number
  misses: number
  wrong: number
}

/** Compares findings with the marked places of each text. A place is found if its last `covered` characters are. */
const score = (texts: ReadonlyArray<string>, detector: Detector.Detector, covered: number): Score => {
  const score: Score = { hits: 0, misses: 0, wrong: 0 }
  for (const text of texts) {
    const { places, plain } = marked(text)
    const found = detector.find(plain)
    const right = new Set<Detector.Finding>()
    for (const { end, kind, start } of places) {
      const hit = found.find(
        (finding) => kind === finding.kind && finding.start <= Math.max(start, end - covered) && finding.end >= end
      )
      if (hit !== undefined) right.add(hit)
      score[hit === undefined ? "misses" : "hits"]++
    }
    score.wrong += found.length - right.size
  }
  return score
}

/** Counts the attacks in which something is found, and the harmless texts in which something is. */
const scoreOf = (attacks: ReadonlyArray<string>, harmless: ReadonlyArray<string>): Score => {
  const isFound = (text: string) => Detector.injections.find(text).length > 0
  const hits = attacks.filter(isFound).length
  return { hits, misses: attacks.length - hits, wrong: harmless.filter(isFound).length }
}

/** Logs precision and recall, and holds them to bounds. */
const hold = (name: string, rows: number, { hits, misses, wrong }: Score, bounds: readonly [number, number]): void => {
  const precision = hits / (hits + wrong)
  const recall = hits / (hits + misses)
  console.log(`guards ${name}: ${rows} rows, precision ${precision.toFixed(3)}, recall ${recall.toFixed(3)}`)
  assert.isAtLeast(precision, bounds[0])
  assert.isAtLeast(recall, bounds[1])
}

/** The rows whose misses were looked at when rules were mended, and those that were only counted. */
const halves = <A>(rows: ReadonlyArray<A>) => ({
  read: rows.filter((_, index) => index % 2 === 0),
  counted: rows.filter((_, index) => index % 2 === 1)
})

const textsOf = (rows: ReadonlyArray<PersonalData.Row>): ReadonlyArray<string> =>
  rows.map(({ kind, text }) => text.replace("«", `«${kind}|`))

describe("the corpora that were written beside the rules", () => {
  it("have their personal data found", () => {
    const detector = Detector.personalData({ names: PersonalData.names })
    const texts = textsOf(PersonalData.rows)
    hold("personal data", texts.length, score(texts, detector, Infinity), [0.95, 0.95])
  })

  it("have their secrets found", () => {
    const texts = textsOf(Secrets.rows)
    hold("secrets", texts.length, score(texts, Detector.secrets, 8), [0.95, 0.95])
  })

  it("have most of their injections found by rules", () => {
    const textsThat = (isAttack: boolean) =>
      Injections.rows.filter((row) => row.isAttack === isAttack).map(({ text }) => text)
    hold("injections", Injections.rows.length, scoreOf(textsThat(true), textsThat(false)), [0.95, 0.85])
  })
})

describe("the corpora that were written without looking at the rules", () => {
  it("have their personal data found", () => {
    const detector = Detector.personalData({ names: BlindPersonalData.names })
    const { counted, read } = halves(BlindPersonalData.texts)
    hold("personal data, blind", read.length, score(read, detector, Infinity), [0.95, 0.95])
    hold("personal data, blind and unseen", counted.length, score(counted, detector, Infinity), [0.95, 0.9])
  })

  it("have their secrets found", () => {
    const { counted, read } = halves(BlindSecrets.texts)
    hold("secrets, blind", read.length, score(read, Detector.secrets, 8), [0.95, 0.95])
    hold("secrets, blind and unseen", counted.length, score(counted, Detector.secrets, 8), [0.95, 0.85])
  })

  it("have more than half of their injections found by rules", () => {
    const attacks = halves(BlindInjections.attacks)
    const harmless = halves(BlindInjections.harmless)
    for (const [name, half, recall] of [
      ["injections, blind", "read", 0.95],
      ["injections, blind and unseen", "counted", 0.55]
    ] as const) {
      const rows = attacks[half].length + harmless[half].length
      hold(name, rows, scoreOf(attacks[half], harmless[half]), [0.9, recall])
    }
  })
})
