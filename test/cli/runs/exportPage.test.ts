/** A run as one page, and what failed in it. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { gunzipSync } from "node:zlib"
import { command, final } from "../../support/blocks.ts"
import { folder } from "../../support/folder.ts"
import { kernai } from "../support.ts"

describe("kernai runs", () => {
  it.live("exports a run as one page that needs no network, to a new file only", () =>
    Effect.gen(function* () {
      const place = yield* folder
      const script = join(place, "replies.json")
      writeFileSync(script, JSON.stringify([command("calculator", "1 + 1"), final("Two.")]))
      const store = ["--store", `sqlite:${join(place, "runs.db")}`]
      yield* kernai(["run", "--create", "What is 1 + 1?", "--script", script, ...store, "--quiet"])
      const id = JSON.parse((yield* kernai(["runs", "list", "--json", ...store])).out).runId
      const file = join(place, "run.html")
      const exported = yield* kernai(["runs", "export", id, file, "--html", ...store])
      assert.deepInclude(exported, { code: 0, out: "" })
      const page = readFileSync(file, "utf8")
      const [, packed = ""] = /data-kind="records">([^<]+)</.exec(page) ?? []
      const records = JSON.parse(gunzipSync(Buffer.from(packed, "base64")).toString())
      assert.deepInclude(records[0], { runId: id, revision: 1 })
      assert.strictEqual(records.at(-1).events[0].type, "run_completed")
      assert.strictEqual((yield* kernai(["runs", "export", id, file, "--html", ...store])).code, 2)
    }).pipe(Effect.scoped)
  )

  it.live("explains why a run failed, and the next step", () =>
    Effect.gen(function* () {
      const place = yield* folder
      const script = join(place, "replies.json")
      writeFileSync(script, JSON.stringify([command("calculator", "1 + 1")]))
      const store = ["--store", `sqlite:${join(place, "runs.db")}`]
      yield* kernai(["run", "--create", "What is 1 + 1?", "--script", script, "--max-steps", "1", ...store])
      const id = JSON.parse((yield* kernai(["runs", "list", "--json", ...store])).out).runId
      const shown = yield* kernai(["runs", "show", id, ...store])
      assert.include(shown.out, "cause     step limit, in the turn limit of the agent")
      assert.include(shown.out, "next      Resume the run with a higher maxSteps, or run it again.")
    }).pipe(Effect.scoped)
  )
})
