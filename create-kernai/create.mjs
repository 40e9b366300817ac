#!/usr/bin/env node
// Copies a template into a new folder, installs it, and says what to type next.
import { spawnSync } from "node:child_process"
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync
} from "node:fs"
import { basename, join, resolve } from "node:path"
import { createInterface } from "node:readline/promises"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"

const templates = ["hello", "chat", "mcp", "question", "workflow", "multimodal", "web", "agents", "code", "coding"]
const usage = `usage: npm create kernai@latest FOLDER [-- --template ${templates.join("|")}] [--yes] [--no-install]`

const fail = (message) => {
  console.error(message)
  process.exit(2)
}

const read = () => {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        template: { type: "string", short: "t" },
        yes: { type: "boolean", short: "y" },
        "no-install": { type: "boolean" },
        // Where the library itself comes from, for trying out one that is not published.
        kernai: { type: "string" },
        help: { type: "boolean", short: "h" }
      }
    })
  } catch (error) {
    return fail(`${error.message}\n${usage}`)
  }
}

const { positionals, values } = read()
if (values.help) {
  console.log(usage)
  process.exit(0)
}
const [target] = positionals
if (target === undefined || positionals.length > 1) fail(usage)
const folder = resolve(target)
const name = basename(folder).toLowerCase()
if (!/^[a-z0-9][a-z0-9._-]{0,213}$/.test(name)) fail(`'${basename(folder)}' is no name for a package`)
if (existsSync(folder)) {
  if (!statSync(folder).isDirectory()) fail(`${folder} is a file`)
  if (readdirSync(folder).length > 0) fail(`${folder} is not empty`)
}

const ask = async () => {
  if (values.yes || !process.stdin.isTTY) return templates[0]
  const prompt = createInterface({ input: process.stdin, output: process.stdout })
  // Ctrl-C and Ctrl-D close it.
  const leave = () => process.exit(130)
  prompt.once("close", leave)
  const answer = (await prompt.question(`template (${templates.join(", ")}): `)).trim()
  prompt.off("close", leave).close()
  return answer === "" ? templates[0] : answer
}
const template = values.template ?? (await ask())
if (!templates.includes(template)) fail(`no template '${template}'; there are: ${templates.join(", ")}`)

try {
  mkdirSync(folder, { recursive: true })
} catch (error) {
  fail(`${folder} cannot be made: ${error.message}`)
}
const source = fileURLToPath(new URL("./templates/", import.meta.url))
cpSync(join(source, "shared"), folder, { recursive: true })
cpSync(join(source, template), folder, { recursive: true })
// npm leaves files of this name out of packages, so the template carries it under another.
renameSync(join(folder, "gitignore"), join(folder, ".gitignore"))

const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))
const extra = join(folder, "dependencies.json")
if (values.kernai !== undefined) manifest.dependencies.kernai = values.kernai
if (existsSync(extra)) {
  Object.assign(manifest.dependencies, JSON.parse(readFileSync(extra, "utf8")))
  rmSync(extra)
}
// A package that depends on its own name cannot be installed.
const isTaken = Object.hasOwn({ ...manifest.dependencies, ...manifest.devDependencies }, name)
manifest.name = isTaken ? `my-${name}` : name
writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`)

if (!values["no-install"]) {
  const { status } = spawnSync("npm", ["install", "--no-audit", "--no-fund"], {
    cwd: folder,
    stdio: "inherit",
    shell: process.platform === "win32"
  })
  if (status !== 0) fail("npm install failed; try it again in the folder")
}
const [major, minor] = process.versions.node.split(".").map(Number)
if (major < 22 || (major === 22 && minor < 19)) {
  console.error(`\n${name} needs Node.js 22.19 or later, this is ${process.versions.node}`)
}
const steps = [`cd ${target}`, ...(values["no-install"] ? ["npm install"] : []), "npm start", "npm test"]
console.log(`\n${name} is ready:\n\n${steps.map((step) => `  ${step}`).join("\n")}`)
