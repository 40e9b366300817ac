/**
 * What a publisher runs before the first release, on copies of the files it changes.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const root = join(import.meta.dirname, "..")
const folders = ["", "create-kernai"]

let copy = ""
beforeAll(() => {
  copy = mkdtempSync(join(tmpdir(), "kernai-release-"))
  for (const folder of folders) cpSync(join(root, folder, "package.json"), join(copy, folder, "package.json"))
})
afterAll(() => rmSync(copy, { recursive: true, force: true }))

const name = (place: string) =>
  spawnSync(process.execPath, [join(root, "tools/dev/repository.mjs"), place], { cwd: copy, encoding: "utf8" })

const manifest = (place: string, folder: string) =>
  JSON.parse(readFileSync(join(place, folder, "package.json"), "utf8"))

describe("the public repository", () => {
  it("is missing until a publisher names it, and publishing says how", () => {
    const { status, stderr } = name("--check")
    assert.strictEqual(status, 2)
    assert.include(stderr, "npm run repository -- URL")
    assert.strictEqual(manifest(root, "").scripts.prepublishOnly, "node tools/dev/repository.mjs --check")
  })

  it("is named in both packages by one command, which changes nothing else", () => {
    assert.strictEqual(name("acme").status, 2)
    assert.strictEqual(name("https://github.com/acme/kernai.git").status, 0)
    assert.strictEqual(name("--check").status, 0)
    for (const folder of folders) {
      const { bugs, homepage, repository, ...others } = manifest(copy, folder)
      const { bugs: _, homepage: __, repository: before, ...othersBefore } = manifest(root, folder)
      assert.strictEqual(homepage, "https://github.com/acme/kernai#readme")
      assert.deepStrictEqual(bugs, { url: "https://github.com/acme/kernai/issues" })
      assert.deepStrictEqual(repository, { ...before, url: "git+https://github.com/acme/kernai.git" })
      assert.deepStrictEqual(others, othersBefore)
    }
  })
})
