/**
 * Every numbered example runs, and prints the output that its last lines document.
 */
import { afterEach, assert, describe, it, vi } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { isLate } from "./support/lateLines.ts"
import { isLong } from "./support/longRun.ts"

const root = join(import.meta.dirname, "..")
const folder = join(root, "examples")
const examples = readdirSync(folder).filter((file) => /^\d\d-.*\.ts$/.test(file))

/** The comment at the end of an example, without its marks. */
const promised = (file: string): string => {
  const text = readFileSync(join(folder, file), "utf8")
  const lines = text.slice(text.lastIndexOf("\n// Prints:\n")).trim().split("\n").slice(1)
  return lines.map((line) => line.replace(/^\/\/ ?/, "")).join("\n")
}

describe("examples", () => {
  afterEach(() => {
    vi.restoreAllMocks()
  })

  it("are numbered without a gap", () => {
    assert.deepStrictEqual(
      examples.map((file) => Number(file.slice(0, 2))),
      examples.map((_, index) => index + 1)
    )
  })

  it.each(examples)("%s prints the output it documents", async (file) => {
    const printed: Array<string> = []
    vi.spyOn(console, "log").mockImplementation((...values) => {
      printed.push(values.join(" "))
    })
    await import(join(folder, file))
    assert.notStrictEqual(promised(file), "")
    assert.strictEqual(printed.filter((line) => !isLate(line)).join("\n"), promised(file))
  })

  // `npm test` runs the samples of the documentation so.
  if (isLong) {
    it("run in plain Node.js from a clone without a build", () => {
      const args = ["--conditions=kernai-source", "examples/01-hello.ts"]
      const { status, stderr, stdout } = spawnSync(process.execPath, args, { cwd: root, encoding: "utf8" })
      assert.strictEqual(stderr, "")
      assert.strictEqual(status, 0)
      assert.strictEqual(stdout.trimEnd(), promised("01-hello.ts"))
    })
  }
})
