/** Runs in a SQLite file that this process may not write. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Kernel, ProtocolRegistry, SkillRegistry } from "kernai"
import { SqlMediaStore, SqlRunStore } from "kernai/sql"
import { MockProvider } from "kernai/testing"
import { spawnSync } from "node:child_process"
import { chmodSync, chownSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { fileURLToPath } from "node:url"
import { agent } from "../support/clerk.ts"

const bin = fileURLToPath(new URL("../../bin/kernai.mjs", import.meta.url))

// The superuser may write everything, so commands run as nobody.
const nobody = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {}

describe("a store that cannot be written", () => {
  it.live("is listed and shown, and says that it is read-only to those who change it", () =>
    Effect.gen(function* () {
      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(`${tmpdir()}/kernai-read-only-`)),
        (path) =>
          Effect.sync(() => {
            chmodSync(path, 0o700)
            rmSync(path, { recursive: true })
          })
      )
      const file = `${folder}/runs.db`
      const kernel = Kernel.layer.pipe(
        Layer.provide([SkillRegistry.layer(), ProtocolRegistry.layer(), MockProvider.layer("<final>Done.</final>")]),
        Layer.provide([SqlRunStore.layerSqlite(file), SqlMediaStore.layerSqlite(file)])
      )
      yield* Effect.provide(Kernel.run(agent, "Go.", { runId: "r" }), kernel)
      chmodSync(file, 0o444)
      if (nobody.uid !== undefined) chownSync(file, nobody.uid, nobody.gid)
      chmodSync(folder, 0o555)
      const kernai = (...args: ReadonlyArray<string>) => {
        const { status, stderr, stdout } = spawnSync(process.execPath, [bin, ...args, "--store", file], {
          ...nobody,
          encoding: "utf8",
          env: { PATH: process.env["PATH"] }
        })
        return { status, text: stdout + stderr }
      }
      const list = kernai("runs", "list")
      assert.strictEqual(list.status, 0, list.text)
      assert.match(list.text, /completed.*r/)
      assert.include(kernai("runs", "show", "r").text, "Done.")
      const removed = kernai("runs", "prune", "--older-than", "0 seconds")
      assert.notStrictEqual(removed.status, 0)
      assert.match(removed.text, /readonly|read-only/)
    }).pipe(Effect.scoped)
  )
})
