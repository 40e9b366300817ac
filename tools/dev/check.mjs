// Type-checks the project: with the Effect build of the compiler where there is one, else with plain tsc.
// What has not changed since the last check is not checked again: `tsconfig.tsbuildinfo` keeps its result.
import { spawnSync } from "node:child_process"
import { existsSync } from "node:fs"
import { availableParallelism } from "node:os"

const effectTsc = `node_modules/@effect/tsgo-${process.platform}-${process.arch}/artifacts/typescript/7.0.2/tsc`
const [command, ...first] = existsSync(effectTsc) ? [effectTsc] : [process.execPath, "node_modules/typescript/bin/tsc"]
// Each checker resolves the types it meets by itself: more of them than cores only repeat work.
const checkers = String(Math.min(4, availableParallelism()))
// The page of the studio runs in a browser and has a check of its own.
for (const project of ["tsconfig.json", "src/studio/page/tsconfig.json"]) {
  const { status } = spawnSync(command, [...first, "-p", project, "--incremental", "--checkers", checkers], { stdio: "inherit" })
  if (status !== 0) process.exit(status ?? 1)
}
