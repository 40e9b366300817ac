/**
 * The compiler names the option that is misspelt: what `typetest/Misspelt.tst.ts` expects, read in its messages.
 */
import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const root = join(import.meta.dirname, "..")
const source = readFileSync(join(root, "typetest/Misspelt.tst.ts"), "utf8")
const directive = /^\/\/ @ts-expect-error (.*)$/gm

/** The words that a message has to hold, by the line it is about. */
const expected = source
  .split("\n")
  .flatMap((line, index) =>
    line.startsWith("// @ts-expect-error")
      ? [{ line: index + 2, words: [...line.matchAll(/"([^"]+)"/g)].map((word) => word[1] ?? "") }]
      : []
  )

/** What the compiler says about the file without its directives. */
const compile = (): string => {
  // Inside the project, so that the file finds kernai by its name; git does not see the folder.
  const folder = join(root, ".kernai", `misspelt-${process.pid}`)
  mkdirSync(folder, { recursive: true })
  try {
    writeFileSync(join(folder, "misspelt.ts"), source.replace(directive, "//"))
    writeFileSync(join(folder, "tsconfig.json"), `{ "extends": "../../tsconfig.json", "include": ["*.ts"] }`)
    const args = [
      "node_modules/typescript/bin/tsc",
      "--singleThreaded",
      "--pretty",
      "false",
      "-p",
      join(folder, "tsconfig.json")
    ]
    return spawnSync(process.execPath, args, { cwd: root, encoding: "utf8" }).stdout
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

describe("a misspelt option", () => {
  it("is named by the compiler", { timeout: 120_000 }, () => {
    const messages = compile().split(/\n(?=\S*misspelt\.ts\()/)
    assert.isAtLeast(expected.length, 10)
    for (const { line, words } of expected) {
      const message = messages.find((text) => text.includes(`misspelt.ts(${line},`)) ?? `nothing about line ${line}`
      for (const word of words) assert.include(message, word)
      assert.notInclude(message, "overload")
    }
  })
})
