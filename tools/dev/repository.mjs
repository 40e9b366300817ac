// Names the public repository in both packages: `npm run repository -- https://github.com/acme/kernai`. Until then
// `repository`, `homepage` and `bugs` are placeholders, with which `npm publish` refuses to go on (`--check`).
import { readFileSync, writeFileSync } from "node:fs"

const fail = (message) => {
  console.error(message)
  process.exit(2)
}

const [place = ""] = process.argv.slice(2)
const usage = "npm run repository -- URL, such as https://github.com/acme/kernai"
const isCheck = place === "--check"
const url = place.replace(/\/$/, "").replace(/\.git$/, "")
if (!isCheck && !/^https:\/\/[\w.-]+(?:\/[\w.-]+){2,}$/.test(url)) fail(`usage: ${usage}`)

for (const folder of ["", "create-kernai"]) {
  const file = folder === "" ? "package.json" : `${folder}/package.json`
  const manifest = JSON.parse(readFileSync(file, "utf8"))
  if (isCheck && manifest.repository.url.includes("/OWNER/")) fail(`${file} names no repository yet: ${usage}`)
  if (isCheck) continue
  manifest.homepage = `${url}#readme`
  manifest.bugs = { url: `${url}/issues` }
  manifest.repository = { ...manifest.repository, url: `git+${url}.git` }
  writeFileSync(file, `${JSON.stringify(manifest, null, 2)}\n`)
}
console.log(isCheck ? "both packages name their repository" : `both packages name ${url}`)
