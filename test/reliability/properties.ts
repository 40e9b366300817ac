/**
 * The properties of the tests, each on many cases: the files that state them run again, with the count they ask for.
 */
import { spawn } from "node:child_process"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join, relative } from "node:path"
import { fileURLToPath } from "node:url"
import { variable } from "../support/property.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))

interface Report {
  readonly testResults: ReadonlyArray<{
    readonly name: string
    readonly assertionResults: ReadonlyArray<{
      readonly fullName: string
      readonly status: string
      readonly failureMessages: ReadonlyArray<string>
    }>
  }>
}

/** Files that state properties, and how many these are in all. */
const stated = () => {
  const files: Array<string> = []
  let properties = 0
  for (const name of readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" })) {
    if (!name.endsWith(".test.ts")) continue
    const found = readFileSync(join(root, "test", name), "utf8").match(/\bcases\(/g)?.length ?? 0
    if (found > 0) files.push(join("test", name))
    properties += found
  }
  return { files, properties }
}

/** Tries every property on `count` cases, those of whole conversations on their share, and tells what did not hold. */
export const tryProperties = async (
  count: number
): Promise<{ readonly properties: number; readonly findings: ReadonlyArray<string> }> => {
  const { files, properties } = stated()
  const folder = await mkdtemp(join(tmpdir(), "kernai-properties-"))
  const output = join(folder, "report.json")
  const words = ["node_modules/vitest/vitest.mjs", "run", "--reporter=json", `--outputFile=${output}`, ...files]
  const env = { ...process.env, [variable]: String(count) }
  const child = spawn(process.execPath, words, { cwd: root, env, stdio: "ignore" })
  try {
    const code = await new Promise((resolve, reject) => child.once("exit", resolve).once("error", reject))
    const { testResults }: Report = existsSync(output) ? JSON.parse(readFileSync(output, "utf8")) : { testResults: [] }
    const findings = testResults.flatMap(({ assertionResults, name }) =>
      assertionResults
        .filter(({ status }) => status !== "passed")
        .map(({ failureMessages, fullName }) => `${relative(root, name)}: ${fullName}: ${failureMessages.join(" ")}`)
    )
    // A file that could not be loaded has no test that fails.
    return { properties, findings: code === 0 || findings.length > 0 ? findings : [`the tests ended with ${code}`] }
  } finally {
    child.kill()
    await rm(folder, { recursive: true, force: true })
  }
}
