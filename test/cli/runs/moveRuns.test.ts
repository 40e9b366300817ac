import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { final } from "../../support/blocks.ts"
import { folder } from "../../support/folder.ts"
import { plan } from "../../support/workflow.ts"
import { call, kernai, start } from "../support.ts"

describe("kernai runs import", () => {
  it.live("stores the runs of an export as they were, without the flags of the computer that ran them", () =>
    Effect.gen(function* () {
      const place = yield* folder
      const at = (name: string) => ["--store", join(place, name)]
      const script = join(place, "script.json")
      writeFileSync(script, JSON.stringify([plan(["a"]), final("Yes.")]))
      const ran = yield* kernai([
        "run",
        "--create",
        "Hello",
        "--script",
        script,
        "--no-skills",
        "--json",
        ...at("a.db")
      ])
      const id: string = JSON.parse(ran.out).runId
      const file = join(place, "run.jsonl")
      yield* kernai(["runs", "export", id, file, ...at("a.db")])
      assert.include(readFileSync(file, "utf8"), "commandLine")
      const streamed = yield* kernai(["runs", "export", id, "-", ...at("a.db")])
      assert.deepInclude(streamed, { out: readFileSync(file, "utf8"), progress: "", error: "" })
      assert.isFalse(existsSync("-"))

      const imported = yield* kernai(["runs", "import", "--create", file, ...at("b.db")])
      assert.deepInclude(imported, { code: 0, out: `${id}\n`, error: "" })
      const show = (store: string) => Effect.map(kernai(["runs", "show", id, ...at(store)]), ({ out }) => out)
      assert.strictEqual(yield* show("b.db"), yield* show("a.db"))
      const listed = yield* kernai(["runs", "list", "--json", ...at("b.db")])
      assert.deepInclude(JSON.parse(listed.out), { runId: id, tasks: 1 })
      const again = yield* kernai(["runs", "import", "--create", file, ...at("b.db"), "--json"])
      assert.deepStrictEqual(JSON.parse(again.out), { runs: [`${id}:t1/a`, id] })

      const resumed = yield* kernai(["runs", "resume", id, ...at("b.db")])
      assert.include(resumed.error, "no model is named")
      const replayed = yield* kernai(["runs", "replay", id, "--no-skills", ...at("b.db")])
      assert.include(replayed.out, "no difference: ")
    })
  )

  it.live("reads an export from its input, as another command writes it to its output", () =>
    Effect.gen(function* () {
      const place = yield* folder
      const at = (name: string) => ["--store", join(place, name)]
      const script = join(place, "script.json")
      writeFileSync(script, JSON.stringify(["Grüße."]))
      const run = ["run", "Hello", "--script", script, "--no-skills", "--json"]
      const id: string = JSON.parse((yield* kernai([...run, "--create", ...at("a.db")])).out).runId
      const { out } = yield* kernai(["runs", "export", id, "-", ...at("a.db")])

      const importing = yield* start(["runs", "import", "-", "--create", ...at("b.db")])
      const middle = out.indexOf("Gr") + 2
      importing.type(out.slice(0, middle))
      importing.type(out.slice(middle))
      importing.end()
      assert.deepInclude(yield* importing.ended, { code: 0, out: `${id}\n`, error: "" })
      assert.include((yield* kernai(["runs", "show", id, ...at("b.db")])).out, "Grüße.")

      const empty = yield* call(["runs", "import", "-", ...at("b.db")])
      assert.deepInclude(empty, { code: 2, out: "" })
      assert.include(empty.error, "the input has no run")
    })
  )

  it.live("rejects a file that is not an export, and a run that exists with another journal", () =>
    Effect.gen(function* () {
      const place = yield* folder
      const store = ["--store", join(place, "runs.db")]
      const script = join(place, "script.json")
      writeFileSync(script, JSON.stringify(["Yes."]))
      const ran = yield* kernai(["run", "--create", "Hello", "--script", script, "--no-skills", "--json", ...store])
      const id: string = JSON.parse(ran.out).runId
      const { out } = yield* kernai(["runs", "export", id, ...store])
      const file = join(place, "run.jsonl")
      const refused = Effect.fnUntraced(function* (text: string, reason: string) {
        writeFileSync(file, text)
        const { code, error } = yield* kernai(["runs", "import", "--create", file, ...store])
        assert.strictEqual(code, 2, error)
        assert.include(error, reason)
      })
      yield* refused("", "has no run that is not a task of another")
      yield* refused(`${out}{}\n`, `line ${out.trimEnd().split("\n").length + 1} of`)
      yield* refused(out.replace('"Hello"', '"Bye"'), "line 1 of")

      writeFileSync(file, out.split("\n").slice(0, 2).join("\n"))
      const other = ["--store", join(place, "other.db")]
      yield* kernai(["runs", "import", "--create", file, ...other])
      writeFileSync(script, JSON.stringify(["No."]))
      yield* kernai(["runs", "resume", id, "--script", script, "--no-skills", ...other])
      writeFileSync(file, out)
      const taken = yield* kernai(["runs", "import", "--create", file, ...other])
      assert.deepInclude(taken, { code: 2, out: "" })
      assert.include(taken.error, id)
      const missing = yield* kernai(["runs", "import", "--create", join(place, "none.jsonl"), ...store])
      assert.include(missing.error, "cannot be read (NotFound)")
    })
  )
})
