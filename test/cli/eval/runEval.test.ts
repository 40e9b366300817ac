import { assert, describe, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Experiments from "../../../src/studio/internal/experiments.ts"
import { final } from "../../support/blocks.ts"
import { folder } from "../../support/folder.ts"
import { kernai, ollama } from "../support.ts"

const lines = (...rows: ReadonlyArray<object>): string => rows.map((row) => `${JSON.stringify(row)}\n`).join("")

const capitals = lines(
  { id: "norway", input: "Norway?", expected: "Oslo", replies: [final("Oslo")] },
  { input: "Peru?", expected: "Lima", replies: final("It is Lima.") }
)

/** A folder with files, and `kernai eval` in it. */
const place = Effect.fnUntraced(function* (files: { readonly [name: string]: string }) {
  const directory = yield* folder
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text)
  const path = (name: string) => join(directory, name)
  return {
    path,
    evaluate: (...args: ReadonlyArray<string>) =>
      kernai(["eval", ...args, ...(args.includes("--log") ? [] : ["--log", path("evals")])])
  }
})

const scenario = `
import { Scenario } from "kernai/testing"
export default Scenario.make({
  name: "capitals",
  instructions: "You name capitals.",
  input: "Chile?",
  offline: { root: ['<block type="final">Lima</block>'] },
  expect: ({ result }) => (result === "Santiago" ? [] : ["it is not Santiago"])
})
`

describe("kernai eval", () => {
  it.live("plays the replies of a data set, and compares them with the expected answers", () =>
    Effect.gen(function* () {
      const { evaluate, path } = yield* place({ "capitals.jsonl": capitals })
      const strict = yield* evaluate(path("capitals.jsonl"))
      const summary = "1 of 2 passed (50%, 95% interval 9% to 91%); needed: 100%"
      assert.deepInclude(strict, { code: 1, error: "kernai: the pass rate is below the threshold\n" })
      assert.strictEqual(strict.out, `exact  50% passed  mean score 0.50\n${summary}\n`)
      assert.strictEqual(strict.progress, "passed  norway  Oslo\nfailed  2  exact: score 0  It is Lima.\n")
      const half = yield* evaluate(path("capitals.jsonl"), "--threshold", "0.5")
      assert.deepInclude(half, { code: 0, error: "" })
      const mild = yield* evaluate(path("capitals.jsonl"), "--scorer", "contains", "--repeats", "3", "--json")
      assert.strictEqual(mild.code, 0)
      const report = JSON.parse(mild.out)
      assert.deepInclude(report, { ok: true, threshold: 1, attempts: 6, passed: 6, passRate: 1 })
      assert.deepInclude(report.cases[1], { id: "2", input: "Peru?", expected: "Lima" })
      assert.strictEqual(mild.progress, "")
    })
  )

  it.live("compares only if an answer is expected, and distinguishes scenarios of the same name", () =>
    Effect.gen(function* () {
      const { evaluate, path } = yield* place({
        "a.jsonl": lines({ input: "?", replies: "x" }, { input: "?", expected: "y", replies: "y" }),
        "one.ts": scenario,
        "two.ts": scenario.replace("Lima", "Santiago")
      })
      assert.strictEqual((yield* evaluate(path("a.jsonl"))).code, 0)
      const both = yield* evaluate(path("one.ts"), path("two.ts"), "--concurrency", "1")
      assert.match(both.progress, /^failed .* {2}Lima\npassed {2}capitals {2}Santiago\n$/)
    })
  )

  it.live("writes a report of each evaluation, which the studio lists and opens", () =>
    Effect.gen(function* () {
      const { evaluate, path } = yield* place({ "capitals.jsonl": capitals })
      for (const threshold of ["0.5", "0.9"]) yield* evaluate(path("capitals.jsonl"), "--threshold", threshold)
      const reports = Experiments.make(path("evals"))
      const [newest, before] = yield* Experiments.list(reports)
      assert.deepInclude(newest, { ok: false, threshold: 0.9, attempts: 2, passed: 1, name: path("capitals.jsonl") })
      assert.deepInclude(before, { ok: true, threshold: 0.5 })
      assert.notProperty(newest, "cases")
      const { cases } = Option.getOrThrow(yield* reports.find(newest?.file ?? ""))
      assert.deepStrictEqual(
        cases.map(({ attempts, expected, id }) => [id, expected, attempts[0]?.answer]),
        [
          ["norway", "Oslo", "Oslo"],
          ["2", "Lima", "It is Lima."]
        ]
      )
      for (const file of ["../capitals.jsonl", "eval_/../../capitals.jsonl", "eval_0.json"]) {
        assert.isTrue(Option.isNone(yield* reports.find(file)), file)
      }
    })
  )

  it.live("decides by the threshold although no report can be written", () =>
    Effect.gen(function* () {
      const { evaluate, path } = yield* place({ "capitals.jsonl": capitals })
      const { code, progress } = yield* evaluate(
        path("capitals.jsonl"),
        "--threshold",
        "0.5",
        "--log",
        path("capitals.jsonl")
      )
      assert.strictEqual(code, 0)
      assert.include(progress, "no report was written")
    })
  )

  it.live("reads CSV with quotes, line breaks and empty cells", () =>
    Effect.gen(function* () {
      const csv = `id,input,expected,replies\nn,"Say ""Oslo"", please",Oslo,Oslo\n\np,"two\nlines",,yes\n`
      const { evaluate, path } = yield* place({ "a.csv": csv })
      const { out } = yield* evaluate(path("a.csv"), "--scorer", "regex=^\\w+$", "--json")
      const { cases, passed } = JSON.parse(out)
      assert.deepStrictEqual(
        cases.map(({ input }: { readonly input: string }) => input),
        ['Say "Oslo", please', "two\nlines"]
      )
      assert.notProperty(cases[1], "expected")
      assert.strictEqual(passed, 2)
    })
  )

  it.live("asks a model, and has another one judge the answers", () =>
    Effect.gen(function* () {
      const { asked, env } = yield* ollama((body) =>
        body.includes("You judge") ? final('{"score": 0.2, "reason": "no"}') : final("Quito")
      )
      const { path } = yield* place({ "capitals.jsonl": capitals })
      const args = ["eval", path("capitals.jsonl"), "-m", "ollama/x", "--scorer", "judge=ollama/j"]
      const { code, progress } = yield* kernai([...args, "--criteria", "It is kind."], { env })
      assert.strictEqual(code, 1)
      assert.strictEqual(progress.match(/^failed +\w+ {2}judge: no {2}Quito$/gm)?.length, 2)
      assert.isTrue(asked.some(({ body }) => body.includes("It is kind.")))
      const offline = yield* kernai([...args, "--offline", "--scorer", "exact"], { env })
      assert.include(offline.progress, "Oslo")
    })
  )

  it.live("takes scorers of a schema and of a module, which may be async and may throw", () =>
    Effect.gen(function* () {
      const { evaluate, path } = yield* place({
        "a.jsonl": lines({ input: "?", replies: '{"n": 1}' }, { input: "?", replies: '{"n": "x"}' }),
        "schema.json": JSON.stringify({ type: "object", properties: { n: { type: "integer" } }, required: ["n"] }),
        "own.ts": `import { Evaluation } from "kernai/testing"
export default async ({ text }: Evaluation.Answer) => {
  if (text.includes("x")) throw new Error("an x")
  return { score: 1, reason: "fine" }
}`
      })
      const scorers = ["--scorer", `schema=${path("schema.json")}`, "--scorer", path("own.ts")]
      const { code, out } = yield* evaluate(path("a.jsonl"), ...scorers, "--json")
      assert.strictEqual(code, 1)
      const { cases, scorers: summaries } = JSON.parse(out)
      assert.strictEqual(cases[0].attempts[0].outcome, "passed")
      assert.match(cases[1].attempts[0].reason, /^schema: .*; own: an x$/s)
      assert.deepStrictEqual(
        summaries.map(({ name }: { readonly name: string }) => name),
        ["schema", "own"]
      )
    })
  )

  it.live("runs scenarios as they are, or with the questions of a data set", () =>
    Effect.gen(function* () {
      const { evaluate, path } = yield* place({
        "s.ts": scenario,
        "two.jsonl": lines(
          { input: "Peru?", expected: "Lima" },
          { input: "Chile?", expected: "Santiago", replies: [final("Santiago")] }
        )
      })
      const alone = yield* evaluate(path("s.ts"))
      assert.strictEqual(alone.code, 1)
      assert.include(alone.progress, "failed  capitals  it is not Santiago  Lima")
      for (const offline of [[], ["--offline"]]) {
        assert.strictEqual((yield* evaluate(path("s.ts"), path("two.jsonl"), ...offline)).code, 0)
      }
      const mixed = yield* evaluate(path("s.ts"), "--system", "Sing.")
      assert.deepInclude(mixed, { code: 2 })
      assert.include(mixed.error, "--system is not for scenarios")
    })
  )

  it.live("writes a page that shows every answer as text", () =>
    Effect.gen(function* () {
      const hostile = `<script>alert(1)</script>\u202e"'&`
      const { evaluate, path } = yield* place({ "a.jsonl": lines({ id: hostile, input: hostile, replies: hostile }) })
      writeFileSync(path("report.html"), "old")
      assert.strictEqual((yield* evaluate(path("a.jsonl"), "--html", path("report.html"))).code, 0)
      const page = readFileSync(path("report.html"), "utf8")
      assert.include(page, "default-src 'none'")
      assert.strictEqual(page.split("&lt;script&gt;alert(1)").length - 1, 3)
      assert.notMatch(page, /<script|\u202e/)
      assert.include(page, "1 of 1 passed (100%, 95% interval 21% to 100%); needed: 100%")
    })
  )

  const wrong: ReadonlyArray<readonly [text: string, args: ReadonlyArray<string>, reason: string]> = [
    ["", [], "has no row"],
    ["{", [], "line 1 of"],
    [lines({ question: "?" }), [], "row 1 of"],
    [lines({ id: 1, input: "a" }, { id: "1", input: "b" }), [], "the id '1' occurs twice"],
    [lines({ input: "a" }), [], "nothing could be asked: the row has no 'replies', and no model is named"],
    [capitals, ["--scorer", "judge"], "judge needs a model"],
    [capitals, ["--scorer", "similarity=2"], "a number from 0 to 1"],
    [capitals, ["--scorer", "regex=(?=a)"], "regex: "],
    [capitals, ["--scorer", "schema"], "schema needs a file"],
    [capitals, ["--scorer", "none.ts"], "none.ts cannot be loaded"],
    [capitals, ["--threshold", "2"], "a number from 0 to 1"],
    [capitals, ["--html", "none/report.html"], "none/report.html cannot be written"]
  ]
  it.live.each(wrong)("refuses %j with %j", ([text, args, reason]) =>
    Effect.gen(function* () {
      const { evaluate, path } = yield* place({ "a.jsonl": text })
      const { code, error } = yield* evaluate(path("a.jsonl"), ...args)
      assert.strictEqual(code, 2, error)
      assert.include(error, reason)
    })
  )
})
