import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { plan } from "../../support/workflow.ts"
import { final } from "../../support/blocks.ts"
import { folder } from "../../support/folder.ts"
import { kernai } from "../support.ts"

/** A store in the environment, and a way to run a script in it. */
const place = Effect.map(folder, (folder) => {
  const env = { KERNAI_STORE: join(folder, "runs.db") }
  const script = join(folder, "script.json")
  return {
    folder,
    runs: (...args: ReadonlyArray<string>) => kernai(["runs", ...args], { env }),
    ask: (question: string, ...replies: ReadonlyArray<string>) =>
      Effect.suspend(() => {
        writeFileSync(script, JSON.stringify(replies))
        return kernai(["run", question, "--script", script, "--no-skills", "--json"], { env })
      }).pipe(Effect.map(({ out }): string => JSON.parse(out).runId))
  }
})

describe("kernai runs list", () => {
  it.live("shows the question, the age and the agent of each run, and folds its tasks", () =>
    Effect.gen(function* () {
      const { ask, runs } = yield* place
      const id = yield* ask("Who is\nthere?", plan(["a", "b"]), final("A and B."))
      const { out, progress } = yield* runs("list")
      const [title = "", run = "", ...more] = out.split("\n")
      assert.match(title, /^run +status +age +agent +turns +tasks +cost +question$/)
      assert.match(run, new RegExp(`^${id.slice(0, 12)} +\\w+ +\\d+ s +agent +\\d +2 +Who is there\\?$`))
      assert.deepStrictEqual([more, progress], [[""], ""])
      const listed = JSON.parse((yield* runs("list", "--json")).out)
      assert.deepInclude(listed, { runId: id, question: "Who is\nthere?", tasks: 2, costUsd: null })
    })
  )

  it.live("shows a page, and the command for the next one", () =>
    Effect.gen(function* () {
      const { ask, runs } = yield* place
      const ids = yield* Effect.forEach(["one", "two", "three"], (question) => ask(question, "Yes."))
      const first = yield* runs("list", "--limit", "2", "--search", "yes")
      assert.match(first.out, /three\n.*two\n$/)
      const next = `kernai runs list --after ${ids[1]} --limit 2 --search yes`
      assert.strictEqual(first.progress, `more: ${next}\n`)
      const second = yield* kernai(next.split(" ").slice(1), { env: {} })
      assert.include(second.error, "Missing required flag: --store")
      const last = yield* runs(...next.split(" ").slice(2))
      assert.match(last.out, /^.*question\n.*one\n$/)
      assert.strictEqual(last.progress, "")
    })
  )
})

describe("the id of a run", () => {
  it.live("may be shortened to its beginning, with or without run_, or to its end", () =>
    Effect.gen(function* () {
      const { ask, runs } = yield* place
      const id = yield* ask("Hello", plan(["a"]), final("Yes."))
      for (const short of [id.slice(0, 8), id.slice(4, 9), id.slice(-5)]) {
        assert.include((yield* runs("show", short)).out, `run       ${id}, revision`, short)
        assert.include((yield* runs("show", `${short}:t1/a`)).out, `run       ${id}:t1/a, revision`)
      }
      const exact = yield* runs("show", id)
      assert.strictEqual(exact.code, 0)
    })
  )

  it.live("lists the candidates when it fits several", () =>
    Effect.gen(function* () {
      const { ask, runs } = yield* place
      const ids = yield* Effect.forEach(["one", "two"], (question) => ask(question, "Yes."))
      const { code, error, out } = yield* runs("show", "run_", "--json")
      assert.strictEqual(code, 2)
      assert.strictEqual(error, `kernai: run_ fits 2 runs: ${ids[1]}, ${ids[0]}\n`)
      assert.strictEqual(JSON.parse(out).error.tag, "AmbiguousId")
      for (const id of ["", ":t1/a", "runs"]) assert.include((yield* runs("show", id)).error, "there is no run")
    })
  )
})

describe("kernai runs prune", () => {
  it.live("deletes what ended long ago, with its tasks, and nothing else", () =>
    Effect.gen(function* () {
      const { ask, runs } = yield* place
      const id = yield* ask("Hello", plan(["a"]), final("Yes."))
      assert.strictEqual((yield* runs("prune", "--older-than", "1 hour")).out, "deleted 0 runs, tasks included\n")
      assert.strictEqual(
        (yield* runs("prune", "--older-than", "0 seconds", "--status", "failed")).out,
        "deleted 0 runs, tasks included\n"
      )
      const { out } = yield* runs("prune", "--older-than", "0 seconds", "--json")
      assert.sameMembers(JSON.parse(out).deleted, [id, `${id}:t1/a`])
      assert.strictEqual((yield* runs("list")).progress, "no runs found\n")
      const wrong = yield* runs("prune", "--older-than", "soon")
      assert.strictEqual(wrong.code, 2)
    })
  )
})
