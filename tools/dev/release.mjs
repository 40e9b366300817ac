// Prepares a release: `npm run release -- 0.2.0`. Sets the version wherever it stands, and makes "Unreleased" of the
// changelog the section of this version. docs/releasing.md has the steps before and after.
import { readFileSync, writeFileSync } from "node:fs"

const root = new URL("../../", import.meta.url)
const read = (file) => readFileSync(new URL(file, root), "utf8")
const [next = ""] = process.argv.slice(2)
const { version: last } = JSON.parse(read("package.json"))

const fail = (message) => {
  console.error(message)
  process.exit(2)
}

const parts = (version) => version.split(".").map(Number)
const isLater = ([a, b, c], [d, e, f]) => a > d || (a === d && (b > e || (b === e && c > f)))
if (!/^\d+\.\d+\.\d+$/.test(next)) fail("usage: npm run release -- VERSION, such as 0.2.0")
if (!isLater(parts(next), parts(last))) fail(`${next} does not come after ${last}`)

const day = new Date().toISOString().slice(0, 10)
/** Each file, and its lines that name the version. */
const changes = [
  ["package.json", `"version": "${last}"`, `"version": "${next}"`],
  ["package-lock.json", `"name": "kernai",\n  "version": "${last}"`, `"name": "kernai",\n  "version": "${next}"`],
  [
    "package-lock.json",
    `"name": "kernai",\n      "version": "${last}"`,
    `"name": "kernai",\n      "version": "${next}"`
  ],
  ["create-kernai/package.json", `"version": "${last}"`, `"version": "${next}"`],
  ["create-kernai/templates/shared/package.json", `"kernai": "^${last}"`, `"kernai": "^${next}"`],
  ["src/mcp/internal/handshake.ts", `version: "${last}"`, `version: "${next}"`],
  ["docs/command-line.md", `kernai-${last}.tgz`, `kernai-${next}.tgz`],
  ["CHANGELOG.md", "## Unreleased\n", `## ${next} (${day})\n`]
]
const missing = changes.filter(([file, from]) => !read(file).includes(from))
if (missing.length > 0) fail(missing.map(([file, from]) => `${file} has no ${JSON.stringify(from)}`).join("\n"))
for (const [file, from, to] of changes) writeFileSync(new URL(file, root), read(file).replace(from, to))
console.log(`${last} is ${next} now; read the diff, then follow docs/releasing.md`)
