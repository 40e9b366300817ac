// Builds the documentation as a site in `site`: `npm run docs`. Warnings and links that lead nowhere are failures.
import { spawnSync } from "node:child_process"
import { existsSync } from "node:fs"
import { fileURLToPath } from "node:url"

const here = fileURLToPath(new URL(".", import.meta.url))
const site = fileURLToPath(new URL("../../site", import.meta.url))

const run = (command, args) => {
  const { status } = spawnSync(command, args, { cwd: here, stdio: "inherit", shell: process.platform === "win32" })
  if (status !== 0) process.exit(status ?? 1)
}

if (!existsSync(`${here}node_modules`)) run("npm", ["ci", "--no-audit", "--no-fund"])
run(process.execPath, ["node_modules/typedoc/bin/typedoc"])

const { check } = await import("linkinator")
const { links } = await check({
  path: "/",
  serverRoot: site,
  recurse: true,
  checkFragments: true,
  // On a busy machine a page of the site may come late.
  timeout: 60_000,
  retryErrors: true,
  // Whether other sites answer says nothing about these pages.
  linksToSkip: async (url) => !/^http:\/\/(?:localhost|127\.0\.0\.1)[:/]/.test(url)
})
const broken = links.filter(({ state }) => state === "BROKEN")
const sound = links.filter(({ state }) => state === "OK").length
for (const { parent, status, url } of broken) console.error(`${parent} links to ${url}: status ${status}`)
console.log(`${sound} links of the site lead somewhere, ${broken.length} do not`)
process.exit(broken.length === 0 && sound > 100 ? 0 : 1)
