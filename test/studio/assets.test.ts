/** The files of the page. */
import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { gzipSync } from "node:zlib"
import { root } from "../support/house.ts"

const fileOf = (name: string) => readFileSync(`${root}/src/studio/assets/${name}`, "utf8")

describe("the page of the studio", () => {
  it("is built from its sources: run 'npm run page' after a change", () => {
    const script = `import { bundle } from "./tools/dev/page.mjs"; process.stdout.write(JSON.stringify(await bundle()))`
    const ran = spawnSync(process.execPath, ["--input-type=module", "--eval", script], {
      cwd: root,
      encoding: "utf8",
      maxBuffer: 16 * 1024 * 1024
    })
    assert.strictEqual(ran.stderr, "")
    const built: ReadonlyArray<{ readonly name: string; readonly text: string }> = JSON.parse(ran.stdout)
    assert.deepStrictEqual(
      built.map(({ name }) => name),
      ["page.js", "charts.js", "chat.js", "page.css"]
    )
    for (const { name, text } of built) assert.isTrue(text === fileOf(name), `${name} is older than its sources`)
  })

  it("has at most 120 KB of script and style at its first load, compressed", () => {
    const bytes = ["page.js", "page.css"].reduce((sum, name) => sum + gzipSync(fileOf(name), { level: 9 }).length, 0)
    assert.isAtMost(bytes, 120_000)
  })

  it("names no other server and cannot end the script of an exported file", () => {
    assert.deepStrictEqual([...fileOf("page.css").matchAll(/url\(|@import/g)], [])
    assert.notInclude(fileOf("page.js"), "</script")
    assert.notInclude(fileOf("page.css"), "</style")
  })
})
