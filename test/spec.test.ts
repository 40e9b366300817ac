/**
 * The pages of `docs/spec`: every rule has one home, and every number the tests cite is a rule.
 */
import { assert, describe, it } from "@effect/vitest"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

const root = join(import.meta.dirname, "..")
const spec = join(root, "docs", "spec")

/** The kinds of rules by the page that defines them, in the order in which they stand there. */
const kinds: { readonly [page: string]: ReadonlyArray<string> } = {
  "agent-core.md": ["AC"],
  "block-protocol.md": ["BP", "W", "Trap"],
  "core-primitives.md": ["CP"],
  "durable-run.md": ["DR"],
  "reliability.md": ["F", "R", "S"]
}

interface Rule {
  readonly page: string
  readonly number: string
  readonly text: string
}

/** Every list item that starts with a number in bold. */
const rules: ReadonlyArray<Rule> = Object.keys(kinds).flatMap((page) => {
  const items = readFileSync(join(spec, page), "utf8").matchAll(/^- \*\*([^*\n]+)\*\*(.*)$/gm)
  return Array.from(items, ([, number = "", text = ""]) => ({ page, number, text: text.trim() }))
})

const numbers = rules.map(({ number }) => number)

const citation = /(?<![\w-])(?:(?:BP|W|DR|AC|CP|R|S)-\d+|F\d{1,2}|Trap \d+)(?![\w-])/g

interface Citation {
  readonly file: string
  readonly number: string
}

const citationsIn = (folder: string): ReadonlyArray<Citation> =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts") && file !== "spec.test.ts")
    .flatMap((file) => {
      const found = readFileSync(join(root, folder, file), "utf8").matchAll(citation)
      return Array.from(found, ([number]) => ({ file: `${folder}/${file}`, number }))
    })

const kindOf = (number: string): string => number.replace(/[- ]?\d+$/, "")
const countOf = (number: string): number => Number(/\d+$/.exec(number)?.[0])

describe("the specification", () => {
  it("lists its pages in the README", () => {
    const index = readFileSync(join(spec, "README.md"), "utf8")
    const listed = Array.from(index.matchAll(/^\| \[([^\]]+)\]\(([^)]+)\)/gm), ([, name, target]) => {
      assert.strictEqual(name, target)
      return name
    })
    const pages = readdirSync(spec).filter((file) => file !== "README.md")
    assert.sameMembers(listed, pages)
    assert.sameMembers(Object.keys(kinds), pages)
  })

  it("defines each rule number once", () => {
    const seen = new Set<string>()
    const repeated = numbers.filter((number) => seen.size === seen.add(number).size)
    assert.deepStrictEqual(repeated, [])
    assert.isAbove(seen.size, 300)
  })

  it("keeps each kind of rule on its page, in order and with a text", () => {
    for (const [page, expected] of Object.entries(kinds)) {
      const own = rules.filter((rule) => rule.page === page)
      assert.sameMembers([...new Set(own.map(({ number }) => kindOf(number)))], [...expected], page)
      for (const kind of expected) {
        const counts = own.flatMap(({ number }) => (kindOf(number) === kind ? [countOf(number)] : []))
        assert.deepStrictEqual(
          counts,
          counts.toSorted((a, b) => a - b),
          `${kind} in ${page}`
        )
      }
      for (const { number, text } of own) assert.notStrictEqual(text, "", number)
    }
  })

  it("has every rule that a test, the acceptance or a benchmark cites", () => {
    const known = new Set(numbers)
    const cited = ["test", "accept", "bench"].flatMap(citationsIn)
    const unknown = cited.filter(({ number }) => !known.has(number)).map(({ file, number }) => `${file}: ${number}`)
    assert.deepStrictEqual(unknown, [])
    assert.isAbove(new Set(cited.map(({ number }) => number)).size, 200)
  })

  it("refers to rules that exist", () => {
    const known = new Set(numbers)
    const unknown = Object.keys(kinds).flatMap((page) =>
      Array.from(readFileSync(join(spec, page), "utf8").matchAll(citation), ([number]) => number)
        .filter((number) => !known.has(number))
        .map((number) => `${page}: ${number}`)
    )
    assert.deepStrictEqual(unknown, [])
  })
})
