import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { shortened } from "../../../src/cli/runs/findRun.ts"
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
    env,
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
      assert.match(title, /^run +status +age +agent +turns +tasks +question$/)
      assert.match(run, new RegExp(`^${id.slice(0, 12)} +\\w+ +\\d+ s +agent +\\d +2 +Who is there\\?$`))
      assert.deepStrictEqual([more, progress], [[""], ""])
      const listed = JSON.parse((yield* runs("list", "--json")).out)
      assert.deepInclude(listed, { runId: id, question: "Who is\nthere?", tasks: 2, costUsd: null })
    })
  )

  it.live("fits terminals of 140, 80 and 40 columns", () =>
    Effect.gen(function* () {
      const { ask, env } = yield* place
      yield* ask(`Where is ${"my order ".repeat(20)}?`, final("Here."))
      const at = (columns: number) => Effect.map(kernai(["runs", "list"], { env, columns }), ({ out }) => out)
      assert.match(yield* at(140), /^run +status +age +agent +turns +question\n/)
      assert.match(yield* at(80), /^run +status +age +agent +turns +question\n.* Where is my order.*…\n$/)
      const card = yield* at(40)
      assert.match(
        card,
        /^run_[0-9a-f]{8}\n {2}status completed, age \d+ s, agent agent\n {2}turns 1\n {2}question Where.*…\n$/
      )
      for (const columns of [140, 80, 40]) {
        for (const line of (yield* at(columns)).split("\n")) assert.isAtMost(line.length, columns)
      }
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

describe("kernai runs show", () => {
  it.live("draws the run and its tasks as one tree with their times", () =>
    Effect.gen(function* () {
      const { ask, runs } = yield* place
      const id = yield* ask("Hello", plan(["a", "b"]), final("A and B."))
      const { out } = yield* runs("show", id)
      const tree = out.slice(out.indexOf("\n\n") + 2, out.lastIndexOf("\n\nturn 1"))
      assert.deepStrictEqual(
        tree.split("\n").map((line) => /^[│├└─ ]*(\w+(?: \d)?)/.exec(line)?.[1]),
        ["agent", "turn 1", "agent", "turn 1", "turn 2", "agent", "turn 1", "turn 2", "turn 2", undefined]
      )
      assert.match(tree, /\n├─ turn 1 · scripted +\S+ ms {2} *█+\n│ {2}├─ agent +\S+ ms {2} *─+\n│ {2}│ {2}├─ turn 1/)
    })
  )
})

describe("the id of a run", () => {
  it("is shortened in lists only if it is random, and as far as it stays distinct", () => {
    const ids = ["run_0a1b2c3d4e5f6a7b8c9d0e1f", "run_0a1b2c3d4e5f000000000000", "the-order-of-the-fifth-of-july-2"]
    assert.deepStrictEqual(
      ids.map((id) => shortened(id, ids)),
      ["run_0a1b2c3d4e5f6", "run_0a1b2c3d4e5f0", "the-order-of-the-fifth-of-july-2"]
    )
    assert.strictEqual(shortened("0191d2f0-3c4e-7a5b-8c6d-7e8f9a0b1c2d", ids), "0191d2f0-3c4")
  })

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
