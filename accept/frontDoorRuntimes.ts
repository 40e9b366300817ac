/**
 * Every sample of the documentation, from the packed tarball, on each runtime.
 */
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { samples } from "../test/support/samples.ts"
import type { Packed } from "./packed.ts"
import { attempt, type Line, root, run } from "./support.ts"

interface Runtime {
  readonly name: string
  /** The program, below `accept/node_modules`. */
  readonly program: string
  readonly args: ReadonlyArray<string>
}

const runtimes: ReadonlyArray<Runtime> = [
  { name: "Node 22.19", program: "node-22/bin/node", args: [] },
  { name: "Node 24", program: "node-24/bin/node", args: [] },
  { name: "Node 26", program: "node-26/bin/node", args: [] },
  { name: "Bun", program: "@oven/bun-linux-x64/bin/bun", args: [] },
  {
    name: "Deno",
    program: "@deno/linux-x64-glibc/deno",
    args: ["run", "-A", "--no-check", "--node-modules-dir=manual"]
  }
]

/** Imports each sample, one after the other, and prints for each whether it printed something and ended well. */
const oneByOne = (files: ReadonlyArray<string>) => `import { dirname } from "node:path"
import process from "node:process"
import { pathToFileURL } from "node:url"
const files = ${JSON.stringify(files)}
const { log } = console
const [program] = process.argv
let printed = 0
console.log = () => { printed++ }
for (const file of files) {
  printed = 0
  process.chdir(dirname(file))
  process.argv = [program, file]
  const failed = await import(pathToFileURL(file).href).then(() => undefined, (error) => String(error?.message ?? error))
  log(JSON.stringify({ file, failed: failed ?? (printed === 0 ? "printed nothing" : undefined) }))
}
process.exit(0)
`

/** A project with the unpacked tarball, what users install beside it, and the samples of every page. */
const project = ({ clone, folder, tarball }: Packed, name: string): ReadonlyArray<string> => {
  const modules = join(folder, name, "node_modules")
  mkdirSync(join(modules, "kernai"), { recursive: true })
  const unpacked = run("tar", ["xzf", join(folder, tarball), "--strip-components=1", "-C", join(modules, "kernai")])
  if (unpacked.status !== 0) throw new Error(unpacked.stderr)
  for (const entry of readdirSync(join(clone, "node_modules"))) {
    if (entry !== "kernai" && !entry.startsWith("."))
      symlinkSync(join(clone, "node_modules", entry), join(modules, entry))
  }
  writeFileSync(join(folder, name, "package.json"), JSON.stringify({ type: "module" }))
  const files = samples.map((sample) => join(folder, name, sample.folder, sample.name))
  for (const [index, { text }] of samples.entries()) {
    mkdirSync(dirname(files[index] ?? ""), { recursive: true })
    writeFileSync(files[index] ?? "", text)
  }
  // One that exports runs when another imports it, and one that says what it needs is compiled only.
  const alone = files.filter((_, index) => !/^(?:\/\/ Needs|export) /m.test(samples[index]?.text ?? ""))
  writeFileSync(join(folder, name, "all.mjs"), oneByOne(alone))
  return alone
}

interface Result {
  readonly file: string
  readonly failed?: string
}

const runAll = (packed: Packed, { args, name, program }: Runtime): Omit<Line, "line"> => {
  const place = name.replaceAll(/\W/g, "-")
  const files = project(packed, place)
  const cwd = join(packed.folder, place)
  const ran = run(join(root, "accept/node_modules", program), [...args, join(cwd, "all.mjs")], { cwd })
  const results: ReadonlyArray<Result> = ran.stdout
    .split("\n")
    .filter((line) => line.startsWith('{"file"'))
    .map((line) => JSON.parse(line))
  const failed = results.filter((result) => result.failed !== undefined)
  const names = failed.map((result) => `${result.file.slice(cwd.length + 1)}: ${result.failed?.slice(0, 120)}`)
  const left = results.length < files.length ? `; ended after ${results.length}: ${ran.stderr.trim().slice(-200)}` : ""
  return {
    pass: ran.status === 0 && files.length >= 40 && failed.length === 0 && results.length === files.length,
    figure: `${results.length - failed.length} of ${files.length} in ${ran.seconds.toFixed(0)} s${left}${names.map((text) => `; ${text}`).join("")}`
  }
}

/** The samples on each runtime. */
export const onRuntimes = async (packed: Packed): Promise<ReadonlyArray<Line>> => {
  const lines: Array<Line> = []
  for (const runtime of runtimes) {
    lines.push(await attempt(`every sample runs from the tarball on ${runtime.name}`, () => runAll(packed, runtime)))
  }
  return lines
}
