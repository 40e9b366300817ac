/**
 * Test files run again by the long run, with more cases than `npm test` has time for.
 */
import { spawn } from "node:child_process"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join, relative } from "node:path"
import { fileURLToPath } from "node:url"
import * as LongRun from "../support/longRun.ts"
import * as Property from "../support/property.ts"

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

interface Outcome {
  readonly passed: number
  readonly findings: ReadonlyArray<string>
}

/** Test files in which a pattern occurs, and how often it occurs in all. */
const filesWith = (pattern: RegExp) => {
  const files: Array<string> = []
  let count = 0
  for (const name of readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" })) {
    if (!name.endsWith(".test.ts")) continue
    const found = readFileSync(join(root, "test", name), "utf8").match(pattern)?.length ?? 0
    if (found > 0) files.push(join("test", name))
    count += found
  }
  return { files, count }
}

/** Runs test files with variables of their own. */
const runFiles = async (
  files: ReadonlyArray<string>,
  variables: { readonly [name: string]: string }
): Promise<Outcome> => {
  const folder = await mkdtemp(join(tmpdir(), "kernai-suite-"))
  const output = join(folder, "report.json")
  const words = ["node_modules/vitest/vitest.mjs", "run", "--reporter=json", `--outputFile=${output}`, ...files]
  const env = { ...process.env, [LongRun.variable]: "1", ...variables }
  const child = spawn(process.execPath, words, { cwd: root, env, stdio: "ignore" })
  try {
    const code = await new Promise((resolve, reject) => child.once("exit", resolve).once("error", reject))
    const { testResults }: Report = existsSync(output) ? JSON.parse(readFileSync(output, "utf8")) : { testResults: [] }
    const tests = testResults.flatMap(({ assertionResults, name }) =>
      assertionResults.map((test) => ({ ...test, file: relative(root, name) }))
    )
    const findings = tests
      .filter(({ status }) => status !== "passed")
      .map(({ failureMessages, file, fullName }) => `${file}: ${fullName}: ${failureMessages[0]?.split("\n")[0] ?? ""}`)
    return {
      passed: tests.length - findings.length,
      // A file that could not be loaded has no test that fails.
      findings: code === 0 || findings.length > 0 ? findings : [`the tests ended with ${code}`]
    }
  } finally {
    child.kill()
    await rm(folder, { recursive: true, force: true })
  }
}

/** Tries every property on `count` cases, those of whole conversations on their share. */
export const tryProperties = async (count: number): Promise<Outcome & { readonly properties: number }> => {
  const { count: properties, files } = filesWith(/\bcases\(/g)
  return { properties, ...(await runFiles(files, { [Property.variable]: String(count) })) }
}

/** Test files that `npm test` leaves to the long run. */
const longFiles = (): ReadonlyArray<string> => JSON.parse(readFileSync(join(root, "tools", "dev", "long.json"), "utf8"))

/** Runs the test files of which `npm test` runs only a part or nothing, as a whole. */
export const runWhole = (): Promise<Outcome> =>
  runFiles([...new Set([...filesWith(/\/support\/longRun\.ts"/g).files, ...longFiles()])], {})
