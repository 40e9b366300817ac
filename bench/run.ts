/**
 * Every benchmark, or those named: `npm run bench`, `npm run bench -- parser loop`.
 *
 * Each runs in a process of its own, so that none pays for another's garbage.
 * With `--rows` they are printed as one line of JSON.
 */
import { spawnSync } from "node:child_process"
import { existsSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { type Row, table } from "./support.ts"

const here = fileURLToPath(new URL(".", import.meta.url))
const modules: { readonly [name: string]: () => Promise<() => Promise<ReadonlyArray<Row>>> } = {
  parser: async () => (await import("./parser.ts")).parserBench,
  scheduler: async () => (await import("./scheduler.ts")).schedulerBench,
  loop: async () => (await import("./loop.ts")).loopBench,
  tokens: async () => (await import("./tokens.ts")).tokensBench,
  runs: async () => (await import("./runs.ts")).runsBench,
  start: async () => (await import("./start.ts")).startBench,
  agents: async () => (await import("./agents.ts")).agentsBench,
  store: async () => (await import("./store.ts")).storeBench
}

/** The rows of one benchmark, measured in a new process. */
export const measure = (name: string): ReadonlyArray<Row> => {
  if (!existsSync(`${here}node_modules`)) {
    const { status } = spawnSync("npm", ["ci", "--no-audit", "--no-fund"], {
      cwd: here,
      stdio: "ignore",
      shell: process.platform === "win32"
    })
    if (status !== 0) throw new Error("the peers in bench/ could not be installed: run `npm ci` there")
  }
  const args = ["--expose-gc", fileURLToPath(import.meta.url), "--here", name]
  const { status, stderr, stdout } = spawnSync(process.execPath, args, {
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024
  })
  const line = stdout.split("\n").findLast((line) => line.startsWith("["))
  if (status !== 0 || line === undefined) throw new Error(`the benchmark '${name}' failed: ${stderr}`)
  const rows: ReadonlyArray<Row & { readonly bound: number | null }> = JSON.parse(line)
  // JSON has no infinity: a row without a bound comes back with null.
  return rows.map((row) => ({ ...row, bound: row.bound ?? Infinity }))
}

/** The names of all benchmarks. */
export const names: ReadonlyArray<string> = Object.keys(modules)

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const asked = process.argv.slice(2).filter((word) => !word.startsWith("--"))
  const unknown = asked.filter((name) => !names.includes(name))
  if (unknown.length > 0) {
    console.error(`no benchmark '${unknown.join("', '")}'; there are: ${names.join(", ")}`)
    process.exit(2)
  }
  const chosen = asked.length === 0 ? names : asked
  let failed = false
  for (const name of chosen) {
    if (process.argv.includes("--rows")) console.log(JSON.stringify(measure(name)))
    else if (process.argv.includes("--here")) {
      const bench = await modules[name]?.()
      console.log(JSON.stringify((await bench?.()) ?? []))
    } else {
      const rows = measure(name)
      table(name, rows)
      failed ||= rows.some((row) => !row.pass)
    }
  }
  process.exit(failed ? 1 : 0)
}
