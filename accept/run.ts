/**
 * The acceptance: every promise of a part, one line each, with pass or fail and its figure.
 *
 * `npm run accept -- kernel` (or workflows, mcp, durable, toolbox; several, or
 * none for all). Ends with 0 only when every line passes.
 */
import type { Line } from "./support.ts"

const parts: { readonly [name: string]: () => Promise<() => Promise<ReadonlyArray<Line>>> } = {
  kernel: async () => (await import("./kernel.ts")).kernel,
  workflows: async () => (await import("./workflows.ts")).workflows,
  mcp: async () => (await import("./mcp.ts")).mcp,
  durable: async () => (await import("./durable.ts")).durable,
  toolbox: async () => (await import("./toolbox.ts")).toolbox
}

const asked = process.argv.slice(2)
const names = asked.length === 0 ? Object.keys(parts) : asked
const unknown = names.filter((name) => !Object.hasOwn(parts, name))
if (unknown.length > 0) {
  console.error(`no part '${unknown.join("', '")}'; there are: ${Object.keys(parts).join(", ")}`)
  process.exit(2)
}
let passed = 0
let failed = 0
for (const name of names) {
  const part = await parts[name]?.()
  console.log(name)
  for (const { figure, line, pass } of (await part?.()) ?? []) {
    console.log(`  ${pass ? "pass" : "FAIL"}  ${line}: ${figure}`)
    if (pass) passed++
    else failed++
  }
}
console.log(`${passed} passed, ${failed} failed`)
process.exit(failed === 0 ? 0 : 1)
