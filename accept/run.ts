/**
 * The acceptance: every promise of a part, one line each, with pass or fail and its figure.
 *
 * `npm run accept -- house` (or kernel, workflows, mcp, durable, programs, toolbox, models, wire, agents, cluster, longlived, serve,
 * doors, studio, face, front-door; several, or none for all). Ends with 0 only when every line passes.
 */
import type { Line } from "./support.ts"

const parts: ReadonlyArray<string> = [
  "house",
  "kernel",
  "workflows",
  "mcp",
  "durable",
  "programs",
  "toolbox",
  "attack",
  "agents",
  "models",
  "wire",
  "cluster",
  "longlived",
  "serve",
  "workspace",
  "doors",
  "studio",
  "face",
  "front-door"
]

/** Each part is a file of its name that exports a function of its name, written in camel case. */
const linesOf = async (name: string): Promise<ReadonlyArray<Line>> => {
  const loaded: { readonly [name: string]: (() => Promise<ReadonlyArray<Line>>) | undefined } = await import(
    new URL(`./${name}.ts`, import.meta.url).href
  )
  const exported = name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())
  const part = loaded[exported]
  if (part === undefined) throw new Error(`accept/${name}.ts exports no '${exported}'`)
  return part()
}

// The driver of the browsers closes them at these signals, and every later line would say that its browser is gone.
for (const signal of ["SIGHUP", "SIGTERM"] as const) {
  process.once(signal, () => {
    console.error(`ended by ${signal}`)
    process.exit(1)
  })
}

const asked = process.argv.slice(2)
const names = asked.length === 0 ? parts : asked
const unknown = names.filter((name) => !parts.includes(name))
if (unknown.length > 0) {
  console.error(`no part '${unknown.join("', '")}'; there are: ${parts.join(", ")}`)
  process.exit(2)
}
let passed = 0
let failed = 0
for (const name of names) {
  console.log(name)
  for (const { figure, line, pass } of await linesOf(name)) {
    console.log(`  ${pass ? "pass" : "FAIL"}  ${line}: ${figure}`)
    if (pass) passed++
    else failed++
  }
}
console.log(`${passed} passed, ${failed} failed`)
process.exit(failed === 0 ? 0 : 1)
