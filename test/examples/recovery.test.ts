/**
 * The example of a session that is recovered from its files, as a person calls it (DR-28).
 */
import { afterEach, assert, beforeEach, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { quickly } from "../support/longRun.ts"

const root = join(import.meta.dirname, "..", "..")
let folder = ""

const call = (...args: ReadonlyArray<string>): string => {
  const { status, stderr, stdout } = spawnSync(
    process.execPath,
    ["--conditions=kernai-source", "examples/json-session-recovery.ts", ...args],
    { cwd: root, encoding: "utf8", env: { ...process.env, SESSIONS: folder } }
  )
  assert.deepStrictEqual({ status, stderr }, { status: 0, stderr: "" })
  return stdout
}

const idOf = (shown: string): string => /^(session-\w+) is /m.exec(shown)?.[1] ?? ""

describe("json-session-recovery", () => {
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "kernai-sessions-"))
  })
  afterEach(() => {
    rmSync(folder, { recursive: true, force: true })
  })

  const failures = [
    ["fail", "turn_started"],
    ["model-fail", "model_started"]
  ] as const
  it.each(quickly(failures, ([command]) => command === "model-fail"))(
    "continues with another message after '%s', which leaves the run failed at %s (DR-18, DR-19, DR-28)",
    (command, phase) => {
      const failed = call(command, "What is a thread?")
      const id = idOf(failed)
      assert.include(failed, `${id} is failed/${phase} at revision`)
      // A slow process leaves a lease, too.
      const files = readdirSync(folder).filter((file) => /\.jsonl?$/.test(file))
      assert.deepStrictEqual(files.sort(), [`${id}.json`, `${id}.jsonl`])
      assert.include(call("show", id), `${id} is failed/${phase} at revision`)
      const before = readFileSync(join(folder, `${id}.jsonl`), "utf8")

      const answered = call("reply", "And in short?")
      assert.include(answered, "answer: A fiber is a thread that costs next to nothing.\n")
      assert.include(answered, `${id} is completed/`)
      assert.include(answered, '  user: "What is a thread?"\n  user: "And in short?"\n')
      // The journal only grows.
      assert.isTrue(readFileSync(join(folder, `${id}.jsonl`), "utf8").startsWith(before))
    }
  )

  it("prints its usage, and reports an unknown session", () => {
    assert.include(call(), "fail [text] | model-fail [text] | reply [id] [text] | show [id]")
    assert.strictEqual(call("show", "session-x"), 'there is no session "session-x"\n')
  })
})
