/**
 * Runs every benchmark, or those named: `npm run bench`, `npm run bench -- parser loop`.
 *
 * Each has a process of its own, so none pays for another's garbage. With `--rows` each is printed as
 * one line of JSON, an array of `Row`. Ends with 1 when a bar is missed.
 *
 * kernai is measured as its package has it: `dist` is built first when it is older than the sources.
 */
import { spawnSync } from "node:child_process"
import { existsSync, readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { type Row, table } from "./support.ts"

const here = fileURLToPath(new URL(".", import.meta.url))

/** Each benchmark is a file of its name whose default export returns its rows. */
const names: ReadonlyArray<string> = [
  "parser",
  "scheduler",
  "loop",
  "programs",
  "code",
  "fresh",
  "tokens",
  "runs",
  "heap",
  "start",
  "agents",
  "followers",
  "http",
  "team",
  "store",
  "knowledge",
  "worker",
  "studio",
  "cluster",
  "durable"
]

const npm = (cwd: string, ...args: ReadonlyArray<string>) => {
  const { status } = spawnSync("npm", [...args], { cwd, stdio: "ignore", shell: process.platform === "win32" })
  if (status !== 0) throw new Error(`\`npm ${args.join(" ")}\` failed in ${cwd}`)
}

const install = () => {
  if (!existsSync(`${here}node_modules`)) npm(here, "ci", "--no-audit", "--no-fund")
}

const build = () => {
  const src = join(here, "../src")
  const changedAt = (file: string) => statSync(file).mtimeMs
  const built = join(here, "../dist/index.js")
  const files = readdirSync(src, { recursive: true, encoding: "utf8" }).map((file) => join(src, file))
  if (existsSync(built) && files.every((file) => changedAt(file) <= changedAt(built))) return
  npm(join(here, ".."), "run", "build")
}

/** Measures one benchmark in a new process, which tells on stderr how far it is. */
const measure = (name: string): ReadonlyArray<Row> => {
  const args = ["--expose-gc", fileURLToPath(import.meta.url), "--here", name]
  const { status, stdout } = spawnSync(process.execPath, args, {
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
    stdio: ["ignore", "pipe", "inherit"]
  })
  const line = stdout.split("\n").findLast((line) => line.startsWith("["))
  if (status !== 0 || line === undefined) throw new Error(`the benchmark '${name}' failed with ${status}`)
  const rows: ReadonlyArray<Row> = JSON.parse(line)
  return rows
}

/** Measures one benchmark in this process. */
const measureHere = async (name: string): Promise<ReadonlyArray<Row>> => {
  const bench: { readonly default: () => Promise<ReadonlyArray<Row>> } = await import(`./${name}.ts`)
  return bench.default()
}

const flags = process.argv.slice(2).filter((word) => word.startsWith("--"))
const asked = process.argv.slice(2).filter((word) => !word.startsWith("--"))
const unknown = asked.filter((name) => !names.includes(name))
if (unknown.length > 0) {
  console.error(`no benchmark '${unknown.join("', '")}'; there are: ${names.join(", ")}`)
  process.exit(2)
}
install()
if (!flags.includes("--here")) build()
let isMissed = false
for (const name of asked.length === 0 ? names : asked) {
  const rows = flags.includes("--here") ? await measureHere(name) : measure(name)
  if (flags.length > 0) console.log(JSON.stringify(rows))
  else {
    table(name, rows)
    isMissed ||= rows.some((row) => !row.pass)
  }
}
process.exit(isMissed ? 1 : 0)
