import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { final } from "../support/blocks.ts"
import { folder } from "../support/folder.ts"
import { kernai } from "./support.ts"

const skills = fileURLToPath(new URL("../fixtures/paySkills", import.meta.url))

const program = `<block type="command" name="code">return [await pay({ amount: 5 }), await pay({ amount: 7 })]</block>`

/** Flags for a model that pays twice in one program, and for a store. */
const place = Effect.map(folder, (folder) => {
  const script = join(folder, "script.json")
  writeFileSync(script, JSON.stringify([program, final("Paid twice.")]))
  const settings = ["--script", script, "--skills-from", skills]
  const store = ["--store", join(folder, "runs.db")]
  return { agent: [...settings, "--code"], settings, store }
})

describe("--code", () => {
  it.live(
    "lets the model of a question call the skills from programs, without asking for a run that is not stored",
    () =>
      Effect.gen(function* () {
        const { agent } = yield* place
        const { code, out, progress } = yield* kernai(["run", "Pay", ...agent])
        assert.deepStrictEqual([code, out], [0, "Paid twice.\n"])
        assert.strictEqual(progress.match(/skill +pay .*: paid/g)?.length, 2)
      })
  )

  it.live("asks before each call of a stored run, which a worker continues and a replay repeats", () =>
    Effect.gen(function* () {
      const { agent, settings, store } = yield* place
      const detached = yield* kernai(["run", "--create", "Pay", "--detach", "-q", ...store])
      const id = detached.out.trim()
      const worker = ["worker", "--once", ...agent, ...store]
      for (const amount of [5, 7]) {
        assert.strictEqual((yield* kernai(worker)).code, 3)
        const shown = yield* kernai(["runs", "show", id, ...store])
        assert.include(shown.out, `"amount": ${amount}`)
        assert.strictEqual((yield* kernai(["runs", "approve", id, ...store])).code, 0)
        assert.strictEqual((yield* kernai(["runs", "check", ...agent, ...store])).code, 0)
        assert.strictEqual((yield* kernai(["runs", "check", ...settings, ...store])).code, 1)
      }
      const worked = yield* kernai(worker)
      assert.deepStrictEqual([worked.code, worked.out], [0, `${id}  completed\n`])
      const replayed = yield* kernai(["runs", "replay", id, ...store])
      assert.deepStrictEqual([replayed.code, replayed.error], [0, ""])
      assert.match(replayed.out, /^no difference: \d+ events, 2 runs/)
    })
  )

  it.live("is for a model: a recorded conversation and a stored question refuse it", () =>
    Effect.gen(function* () {
      const { store } = yield* place
      assert.include((yield* kernai(["run", "--code"])).error, "--code needs --model")
      const detached = yield* kernai(["run", "--create", "Pay", "--detach", "--code", ...store])
      assert.include(detached.error, "--code is for 'kernai worker'")
    })
  )
})
