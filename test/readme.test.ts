/**
 * The README is the front door: every sample in it compiles and runs.
 */
import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const root = join(import.meta.dirname, "..")
const readme = readFileSync(join(root, "README.md"), "utf8")
const samples = [...readme.matchAll(/```ts\n([\s\S]*?)```/g)].map((match) => match[1] ?? "")
// Inside the project, so that the samples find it by its name; git does not see the folder.
const folder = join(root, ".kernai", `readme-${process.pid}`)

const node = (args: ReadonlyArray<string>) =>
  spawnSync(process.execPath, [...args], { cwd: root, encoding: "utf8", env: { ...process.env, NO_COLOR: "1" } })

const end = "--- the end of a sample\n"

/** All samples in one process: half of what each needs is the time in which it loads what it imports. */
const oneByOne = `for (const file of process.argv.slice(1)) {
  await import(file)
  process.stdout.write(${JSON.stringify(end)})
}`

describe("README", () => {
  it("has samples that compile and run", { timeout: 60_000 }, () => {
    assert.isAtLeast(samples.length, 4)
    mkdirSync(folder, { recursive: true })
    try {
      const files = samples.map((sample, index) => {
        const file = join(folder, `sample-${index + 1}.ts`)
        writeFileSync(file, sample)
        return file
      })
      writeFileSync(
        join(folder, "tsconfig.json"),
        JSON.stringify({
          extends: "../../tsconfig.json",
          compilerOptions: { noUnusedLocals: false },
          include: ["*.ts"]
        })
      )
      const compiled = node([
        "node_modules/typescript/bin/tsc",
        "--singleThreaded",
        "-p",
        join(folder, "tsconfig.json")
      ])
      assert.strictEqual(compiled.status, 0, compiled.stdout)
      const ran = node(["--conditions=kernai-source", "--input-type=module", "-e", oneByOne, ...files])
      assert.strictEqual(ran.status, 0, `${ran.stdout}\n${ran.stderr}`)
      const printed = ran.stdout.split(end)
      assert.strictEqual(printed.length, files.length + 1)
      for (const [index, file] of files.entries()) assert.notStrictEqual(printed[index]?.trim(), "", file)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })

  it("links to files that are there", () => {
    const links = [...readme.matchAll(/\]\(([^)#:]+)\)/g)].map((match) => match[1] ?? "")
    assert.deepStrictEqual(
      links.filter((link) => !existsSync(join(root, link))),
      []
    )
  })
})
