// Type-checks the project: with the Effect build of the compiler where there is one, else with plain tsc.
// What has not changed since the last check is not checked again: `tsconfig.tsbuildinfo` keeps its result.
import { spawn } from "node:child_process"
import { existsSync } from "node:fs"
import { availableParallelism } from "node:os"

const effectTsc = `node_modules/@effect/tsgo-${process.platform}-${process.arch}/artifacts/typescript/7.0.2/tsc`
const [command, ...first] = existsSync(effectTsc) ? [effectTsc] : [process.execPath, "node_modules/typescript/bin/tsc"]
// Each checker resolves the types it meets by itself, and the tests run beside this: two take a fifth more work than one.
const checkers = String(Math.min(4, Math.max(1, availableParallelism() >> 1)))
// The compiler collects its garbage less often: a fifth less work for a fifth more memory.
const env = { GOGC: "400", ...process.env }
const check = (project) =>
  new Promise((resolve, reject) => {
    const args = [...first, "-p", project, "--incremental", "--checkers", checkers]
    spawn(command, args, { stdio: "inherit", env }).once("error", reject).once("close", resolve)
  })

// The page of the studio runs in a browser and has a check of its own.
const statuses = await Promise.all(["tsconfig.json", "src/studio/page/tsconfig.json"].map(check))
process.exit(statuses.every((status) => status === 0) ? 0 : 1)
