// Runs the lint rules, and the type check beside the tests, which often wait: `npm test`.
//
// Prints one line for a step that passes, everything for one that fails, and of the tests failures,
// skips and a summary. `--verbose` prints every test and every log. All other arguments are vitest's.
// Files in long.json start many processes or try thousands of cases: `npm run reliability` runs them,
// `npm test -- --long` too, and so does every command that names one.
import { spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

/** Runs a command and resolves to whether it passed; with `capture`, its output is kept instead of printed. */
const run = (command, args, { capture = false } = {}) =>
  new Promise((resolve, reject) => {
    let output = ""
    const child = spawn(command, args, {
      stdio: ["ignore", capture ? "pipe" : "inherit", capture ? "pipe" : "inherit"],
      // Node keeps what it compiles: every start but the first is faster.
      env: { NODE_COMPILE_CACHE: join(tmpdir(), "node-compile-cache"), ...process.env },
      // npm is a script for the shell on Windows.
      shell: command === "npm" && process.platform === "win32"
    })
    for (const stream of capture ? [child.stdout, child.stderr] : []) {
      stream.setEncoding("utf8").on("data", (text) => (output += text))
    }
    child.once("error", reject).once("close", (code) => resolve({ passed: code === 0, output }))
  })

const step = async (name) => {
  const started = performance.now()
  const { output, passed } = await run("npm", ["run", "--silent", name], { capture: true })
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  if (!passed || isVerbose) console.log(output)
  console.log(`${name} ${passed ? "passed" : "failed"} in ${seconds} s`)
  return passed
}

const isVerbose = process.argv.includes("--verbose")
const isLong = process.argv.includes("--long")
const asked = process.argv.slice(2).filter((word) => word !== "--verbose" && word !== "--long")
const long = JSON.parse(readFileSync(new URL("long.json", import.meta.url), "utf8"))
const left = isLong || asked.some((word) => !word.startsWith("-")) ? [] : long.map((file) => `--exclude=${file}`)
const details = isVerbose ? ["--reporter=verbose", "--silent=false"] : []

if (!(await step("lint"))) process.exit(1)
const vitest = ["node_modules/vitest/vitest.mjs", "run", ...details, ...left, ...asked]
const [typed, tested] = await Promise.all([step("check"), run(process.execPath, vitest)])
if (left.length > 0) console.log(`${left.length} long files are left to npm run reliability`)
process.exit(typed && tested.passed ? 0 : 1)
